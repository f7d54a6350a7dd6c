"""Queue tasks with Huey, run them with its consumer, print the tasks a second."""

import logging
import sys
import time

from huey import SqliteHuey

logging.disable(logging.CRITICAL)
file, n = sys.argv[1], int(sys.argv[2])
huey = SqliteHuey(filename=file)


@huey.task()
def work():
    pass


@huey.task()
def tell():
    ended.append(time.perf_counter())


ended = []
for _ in range(n):
    work()
tell()
consumer = huey.create_consumer(workers=2)
start = time.perf_counter()
consumer.start()
while not ended:
    time.sleep(0.01)
print(n / (ended[0] - start))
consumer.stop(graceful=True)
