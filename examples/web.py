"""A web server that answers at once and works afterwards, in one process.

Run it (`python examples/web.py`), then: curl -d 'some words' http://127.0.0.1:8000/
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import svcq


@svcq.task(queue="words", max_attempts=3)
def count_words(text: str) -> int:
    return len(text.split())


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        job = count_words.enqueue(text)
        self._answer(202, f"Accepted as job {job.id}: see /{job.id}\n")

    def do_GET(self) -> None:
        try:
            job = svcq.default_client().get(self.path.strip("/"))
        except svcq.SvcqError as error:
            self._answer(404, f"{error}\n")
        else:
            self._answer(200, f"{job.state}: {job.result}\n")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())


def main(port: int = 8000) -> None:
    with (
        svcq.Worker(slots=2, queues=["words"]),
        ThreadingHTTPServer(("127.0.0.1", port), Handler) as server,
    ):
        print(f"Listening on http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("Finishing what runs.")


if __name__ == "__main__":
    main()
