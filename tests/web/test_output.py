"""The output of jobs over the API: whole, in parts, and while it is written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from svcq.logs import drop_middle, log_file, open_log
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE
from tests.web.served import Served, events
from tests.web.test_stream import resident


def run(served: Served, command: str, **options: object) -> int:
    job = served.client.command(command, cwd=str(served.work), **options).id
    served.client.wait(job, PATIENCE)
    return job


def write(served: Served, data: bytes) -> int:
    """A job whose first run has written this, as far as anyone can tell."""
    job = run(served, "echo")
    served.log(job).write_bytes(data)
    return job


def test_whole_by_lines_and_by_ranges(served: Served) -> None:
    job = write(served, b"".join(b"line %d\n" % n for n in range(1000)))
    whole = served.ask("GET", f"/jobs/{job}/output")
    assert (len(whole.body), whole.headers["accept-ranges"]) == (8890, "bytes")
    assert served.ask("GET", f"/jobs/{job}/output?tail=2").body == b"line 998\nline 999\n"
    assert served.ask("GET", f"/jobs/{job}/output?tail=0").body == b""
    for asked, status, body, told in (
        ("bytes=0-5", 206, b"line 0", "bytes 0-5/8890"),
        ("bytes=-5", 206, b" 999\n", "bytes 8885-8889/8890"),
        ("bytes=8885-", 206, b" 999\n", "bytes 8885-8889/8890"),
        ("bytes=8885-99999999", 206, b" 999\n", "bytes 8885-8889/8890"),
    ):
        part = served.ask("GET", f"/jobs/{job}/output", headers={"Range": asked})
        assert (part.status, part.body, part.headers["content-range"]) == (status, body, told)
    beyond = served.ask("GET", f"/jobs/{job}/output", headers={"Range": "bytes=9000-"})
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */8890")
    assert beyond.sentence
    for nonsense in ("bytes=", "bytes=-", "bytes=5-1", "lines=1-2", "bytes=1-2,4-5", "bytes=a-b"):
        refused = served.ask("GET", f"/jobs/{job}/output", headers={"Range": nonsense})
        assert refused.status in (400, 416), nonsense


def test_the_end_of_no_output_is_no_output(served: Served) -> None:
    job = write(served, b"")
    last = served.ask("GET", f"/jobs/{job}/output", headers={"Range": "bytes=-100"})
    assert (last.status, last.body) == (200, b"")
    first = served.ask("GET", f"/jobs/{job}/output", headers={"Range": "bytes=0-"})
    assert (first.status, first.headers["content-range"]) == (416, "bytes */0")


def test_every_run_has_its_own(served: Served) -> None:
    served.client.queue("thrice", max_attempts=3)
    job = run(served, "echo run $SVCQ_RUN | cut -d. -f2; exit 1", queue="thrice")
    assert served.ask("GET", f"/jobs/{job}/output").body == b"3\n"
    assert served.ask("GET", f"/jobs/{job}/output?run=1").body == b"1\n"
    missing = served.ask("GET", f"/jobs/{job}/output?run=4")
    assert missing.status == 404
    assert "no run 4" in missing.sentence


def test_a_part_that_was_dropped_is_told(served: Served) -> None:
    job = write(served, b"begin\n" + b"x" * 1_000_000 + b"\nend\n")
    with served.log(job).open("rb+") as file:
        drop_middle(file.fileno(), 131072)
    body = served.ask("GET", f"/jobs/{job}/output").body
    assert body.startswith(b"begin\n")
    assert body.endswith(b"\nend\n")
    assert b"bytes dropped" in body
    assert len(body) < 200_000


def test_what_is_gone_is_told_from_the_history(served: Served) -> None:
    job = run(served, "echo kept; exit 1")
    served.log(job).unlink()
    answer = served.ask("GET", f"/jobs/{job}/output")
    assert (answer.body, answer.headers["svcq-output"]) == (b"kept", "last-lines")


def test_what_has_not_run_has_none(served: Served) -> None:
    job = served.client.command("true", hold=True).id
    assert served.ask("GET", f"/jobs/{job}/output").status == 404


@pytest.mark.parametrize(
    "trick", ["..%2f..%2ftoken", "%2e%2e", "1%2f..%2f..", "..", "1.1.log", "%00"]
)
def test_names_lead_nowhere_but_to_jobs(served: Served, trick: str) -> None:
    answer = served.ask("GET", f"/jobs/{trick}/output")
    assert answer.status in (400, 404, 422)
    assert served.token() not in answer.body.decode()


def test_a_link_in_the_place_of_a_log_is_not_followed(served: Served) -> None:
    job = run(served, "echo")
    log = served.log(job)
    log.unlink(missing_ok=True)
    log.symlink_to(served.path / "token")
    for headers in ({}, {"Range": "bytes=0-"}):
        answer = served.ask("GET", f"/jobs/{job}/output", headers=headers)
        assert served.token().encode() not in answer.body
        assert answer.status in (404, 206, 200)
    log.unlink()


def test_output_is_followed_through_all_attempts(served: Served) -> None:
    served.client.queue("twice", max_attempts=2)
    go = served.work / "go"
    job = served.client.command(
        f"echo begun é; until [ -e {go} ]; do sleep 0.05; done; echo over; exit 1",
        queue="twice", cwd=str(served.work),
    ).id  # fmt: skip
    eventually(lambda: served.is_running(job), PATIENCE)
    with served.opened("GET", f"/api/v1/jobs/{job}/output/stream") as response:
        stream = events(response)
        assert next(stream).kind == "run"
        first = next(stream)
        assert (first.kind, first.data) == ("output", {"text": "begun é\n"})
        assert first.id == "1:9"
        go.touch()
        rest = list(stream)
    assert [event.kind for event in rest][-1] == "end"
    assert rest[-1].data == {"state": "dead", "run": 2}
    text = "".join(event.data["text"] for event in rest if event.kind == "output")
    assert text == "over\nbegun é\nover\n"
    assert [event.data["run"] for event in rest if event.kind == "run"] == [2]
    go.unlink()


def test_a_followed_output_is_resumed_where_it_broke_off(served: Served) -> None:
    job = write(served, "".join(f"é {n}\n" for n in range(100)).encode())
    headers = {"Last-Event-ID": "1:20"}
    with served.opened("GET", f"/api/v1/jobs/{job}/output/stream", headers=headers) as response:
        seen = list(events(response))
    text = "".join(event.data["text"] for event in seen if event.kind == "output")
    assert text == "".join(f"é {n}\n" for n in range(100)).encode()[20:].decode("utf-8", "replace")
    assert seen[-1].kind == "end"


def test_characters_are_not_torn(served: Served) -> None:
    job = served.client.command("true", hold=True, queue="torn").id
    served.client.queue("torn", paused=True)
    log = log_file(served.path, job, 1)
    descriptor = open_log(log)
    try:
        with served.opened("GET", f"/api/v1/jobs/{job}/output/stream") as response:
            stream = events(response)
            assert next(stream).kind == "run"
            os.write(descriptor, "a€".encode()[:2])
            first = next(stream)
            assert (first.data["text"], first.id) == ("a", "1:1")
            os.write(descriptor, "€b".encode()[1:])
            assert next(stream).data["text"] == "€b"
    finally:
        os.close(descriptor)


def test_the_end_of_a_gigabyte_is_there_at_once(served: Served) -> None:
    job = run(served, "echo")
    with served.log(job).open("wb") as file:
        # Real bytes, written in pieces: a hole would count as dropped.
        piece = b"".join(b"%015d\n" % n for n in range(65536))
        for _ in range(256):
            file.write(piece)
        file.write(b"the end\n")
        size = file.tell()
    memory = resident(served.service.pid)
    began = time.monotonic()
    assert served.ask("GET", f"/jobs/{job}/output?tail=1").body == b"the end\n"
    part = served.ask("GET", f"/jobs/{job}/output", headers={"Range": "bytes=-8"})
    assert part.body == b"the end\n"
    assert part.headers["content-range"].endswith(f"/{size}")
    with served.opened("GET", f"/api/v1/jobs/{job}/output/stream?tail=1") as response:
        assert [event.kind for event in events(response)] == ["run", "output", "end"]
    assert time.monotonic() - began < 10  # to read all of it three times takes longer
    # One who begins to read it all and does not go on costs no memory either.
    with served.opened("GET", f"/api/v1/jobs/{job}/output") as response:
        assert response.read(16) == b"%015d\n" % 0
        served.ok("GET", "/counts")
        assert resident(served.service.pid) - memory < 16 << 20
    served.log(job).unlink()


def test_a_reader_who_falls_far_behind_is_taken_to_the_end(served: Served) -> None:
    job = write(served, b"x" * (6 << 20) + b"\nthe end\n")
    headers = {"Last-Event-ID": "1:0"}
    with served.opened("GET", f"/api/v1/jobs/{job}/output/stream", headers=headers) as response:
        seen = list(events(response))
    skipped = [event.data["bytes"] for event in seen if event.kind == "skipped"]
    assert skipped == [(6 << 20) + 9 - (64 << 10)]
    assert seen[-2].data["text"].endswith("\nthe end\n")


def test_the_place_of_an_output(served: Served) -> None:
    job = write(served, b"one\ntwo\n")
    assert served.ok("GET", f"/jobs/{job}/output/place?tail=1") == {"run": 1, "size": 8, "start": 4}
    Path(served.log(job)).unlink()
    assert served.ok("GET", f"/jobs/{job}/output/place")["size"] is None
