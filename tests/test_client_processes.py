"""One client for many threads, across a fork, and in a process that dies."""

from __future__ import annotations

import ast
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

import svcq
from svcq.client import Client
from tests.clients import ROOT, run_python


@svcq.task
def work(n: int) -> None: ...


def test_twenty_threads_share_a_client(client: Client) -> None:
    with ThreadPoolExecutor(20) as pool:
        jobs = list(pool.map(lambda n: client.enqueue(work, n), range(200)))
    assert len({job.id for job in jobs}) == 200
    assert client.counts()["pending"] == 200
    assert {client.get(job.id).args[0] for job in jobs} == set(range(200))


def test_threads_that_do_different_things(client: Client) -> None:
    def live(n: int) -> str:
        job = client.command("true", name=f"job-{n}")
        for claim in client.fetch(n=3):
            client.progress(claim, 0.5)
            client.complete(claim, n)
        return client.wait(job, timeout=30).state

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(live, range(80))) == {"completed"}


FORKED = """
import os, sys, svcq
client = svcq.Client(store=sys.argv[1])
first = client.command("true")
child = os.fork()
mine = [client.command("true").id for _ in range(50)]
if not child:
    print(*mine, flush=True)
    client.close()
    sys.exit()
_, status = os.waitpid(child, 0)
print(*mine, flush=True)
assert client.counts()["pending"] == 101, client.counts()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_goes_on_with_the_client(client: Client) -> None:
    ended = run_python(FORKED, client.config.store)
    assert (ended.returncode, ended.stderr) == (0, "")
    ids = [int(word) for word in ended.stdout.split()]
    assert len(set(ids)) == 100
    assert client.counts()["pending"] == 101


FORKED_WHILE_BUSY = """
import os, signal, sys, threading, svcq
client = svcq.Client(store=sys.argv[1])
done = threading.Event()
def keep_busy():
    while not done.is_set():
        client.command("true")
threads = [threading.Thread(target=keep_busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        signal.alarm(10)  # a lock that a thread of the parent held would never be released
        client.command("true", queue="child")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        break
done.set()
for thread in threads:
    thread.join()
os._exit(1 if status else 0)
"""


def test_a_fork_while_other_threads_use_the_client(client: Client) -> None:
    ended = run_python("import warnings; warnings.simplefilter('ignore')" + FORKED_WHILE_BUSY,
                       client.config.store)  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert client.counts("child")["pending"] == 20


KILLED = """
import os, signal, sys, svcq
client = svcq.Client(store=sys.argv[1])
print(client.command("true", name="told").id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_told_is_there_after_a_kill(client: Client) -> None:
    ended = run_python(KILLED, client.config.store)
    assert ended.returncode == -signal.SIGKILL
    job = client.get("told")
    assert (job.id, job.state) == (int(ended.stdout), "pending")


KILLED_IN_A_TRANSACTION = """
import os, signal, sqlite3, sys, svcq
client = svcq.Client(store=sys.argv[1])
client.using(sqlite3.connect(sys.argv[1])).command("true")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_not_committed_is_not_there_after_a_kill(client: Client) -> None:
    assert run_python(KILLED_IN_A_TRANSACTION, client.config.store).returncode == -signal.SIGKILL
    assert sum(client.counts().values()) == 0
    assert client.command("true").id == 1


@pytest.mark.parametrize("file", sorted((ROOT / "svcq").rglob("*.py")), ids=lambda f: f.name)
def test_nothing_is_pickled(file) -> None:  # type: ignore[no-untyped-def]
    """Whoever can write a pickle can run code as its reader; jobs are JSON."""
    names = {
        name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
    }
    assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
