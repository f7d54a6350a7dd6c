"""Queue jobs with Huey, drain them, print the jobs a second. Runs in Huey's own environment."""

import logging
import sys
import time

from huey import SqliteHuey

logging.disable(logging.CRITICAL)
file, n = sys.argv[1], int(sys.argv[2])
huey = SqliteHuey(filename=file, results=False)


@huey.task()
def work(to, subject, n):
    pass


for i in range(n):
    work("someone@example.org", "hello", i)
done = 0
start = time.perf_counter()
while (job := huey.dequeue()) is not None:
    huey.execute(job)
    done += 1
print(done / (time.perf_counter() - start))
