"""Running a task in this very process: for the library's worker and for tests."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable

from svcq.errors import InvalidArguments, NotFound
from svcq.jobs import Claim, Outcome, completed, failed, rejected, snoozed
from svcq.policy import encode_json
from svcq.tasks import CurrentJob, Reject, Retry, Snooze, find_task, running_job


def execute(
    claim: Claim,
    job: CurrentJob,
    max_payload: int,
    on_error: Callable[[Exception], None] | None = None,
) -> Outcome:
    """Call the task; its end, however it came, as an outcome.

    `on_error` hears of an exception that the task did not raise on purpose.
    """
    try:
        task = find_task(claim.task)
        args, kwargs = claim.call
        task.check_arguments(args, kwargs)
    except (NotFound, InvalidArguments) as error:
        return rejected(str(error))
    token = running_job.set(job)
    try:
        result = task.function(*args, **kwargs)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        if result is None:
            return completed()
        return completed(encode_json(result, f"contents of the result of {task.name}", max_payload))
    except Retry as error:
        return failed(str(error), delay_ms=error.delay_ms)
    except Reject as error:
        return rejected(str(error.reason))
    except Snooze as error:
        return snoozed(error.delay_ms)
    except Exception as error:  # noqa: BLE001 (whatever the task raises is its failure, not ours)
        if on_error is not None:
            on_error(error)
        return failed(f"{type(error).__name__}: {error}", tail=traceback.format_exc())
    finally:
        running_job.reset(token)
