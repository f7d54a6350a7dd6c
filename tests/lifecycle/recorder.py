"""One run of a job that writes down, beyond the reach of svcq, when it starts and ends."""

import fcntl
import os
import sys
import time


def record(folder: str, job: str, seconds: float) -> None:
    lock = os.open(f"{folder}/{job}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        write(folder, f"{job} overlaps")
        raise
    write(folder, f"{job} starts")
    time.sleep(seconds)
    write(folder, f"{job} ends")
    os.close(lock)


def write(folder: str, text: str) -> None:
    descriptor = os.open(f"{folder}/record", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{text}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    record(sys.argv[1], os.environ["SVCQ_JOB"], float(sys.argv[2]))
