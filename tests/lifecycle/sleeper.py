"""A process that tells its pid and would live for ten minutes, hiding as it is told to."""

import os
import resource
import signal
import sys
import time


def main(file: str, *ways: str) -> None:
    if "ignore" in ways:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "fork" in ways and os.fork():
        return
    if "close" in ways:
        os.closerange(0, 256)
    if "unbrand" in ways:
        resource.setrlimit(10, (1000, 1000))
    tell(file)
    if "stop" in ways:
        os.kill(os.getpid(), signal.SIGSTOP)
    if "flee" in ways:
        flee(file)
    time.sleep(600)


def flee(file: str) -> None:
    """Live on in a child, again and again."""
    for _ in range(2000):
        if os.fork():
            os._exit(0)
        tell(file)
        time.sleep(0.02)


def tell(file: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
