"""One call of a task: what a runner is told of it, what it may use, and its end as an outcome."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from svcq.errors import InvalidArguments
from svcq.host import processes
from svcq.host.files import open_plain_file
from svcq.jobs import Claim, Outcome, cancelled, completed, failed, rejected, snoozed
from svcq.logs import drop_middle, full_disk, log_file, tail
from svcq.policy import Policy, encode_json
from svcq.worker.runners import Limits


class Call:
    """One run of a task."""

    def __init__(self, claim: Claim, marker: str, policy: Policy) -> None:
        self.claim = claim
        self.marker = marker
        self.policy = policy  # laid anew when a runner tells what the task says of itself
        self.key = f"{claim.id}.{claim.run}"
        self.claimed = time.monotonic()
        self.began: float | None = None
        self.ending: Outcome | None = None  # what it will be when its runner is killed
        self.asked_at: float | None = None  # when it was asked to end

    def limits(self) -> Limits:
        """What its runner must have been started with."""
        return Limits(self.policy.nice, self.policy.cpus, self.policy.memory)

    def item(self, home: Path) -> list[Any]:
        """It as a runner is told."""
        claim = self.claim
        log = str(log_file(home, claim.id, claim.run))
        return [self.key, claim.task, claim.args, claim.failures + 1, log, self.marker, claim.id,
                claim.run, self.policy.grace / 1000, processes.brand_of(self.marker)]  # fmt: skip

    def too_much_output(self, home: Path) -> str | None:
        """Why it must end, if it wrote too much and may not; else its log is kept short."""
        limit = self.policy.max_output
        if limit is None:
            return None
        try:
            log = open_plain_file(log_file(home, self.claim.id, self.claim.run), to_write=True)
        except OSError:
            return None  # it has written nothing, or its log was deleted
        try:
            size = drop_middle(log, limit)
        finally:
            os.close(log)
        over = size > limit and self.policy.when_over == "end"
        return f"wrote {size:,} bytes of output, over its {limit:,}" if over else None


def outcome_of(
    home: Path, call: Call, how: str, result: Any, error: Any, delay_ms: Any, wrote: bool
) -> Outcome:
    """A runner's words as an outcome; text is cleaned, since a task can say anything."""
    log = log_file(home, call.claim.id, call.claim.run)
    end = tail(log) if wrote else None
    text = clean(error)
    match how:
        case "completed":
            return completed(result, tail=end) if storable(result) else failed(_NO_TEXT, tail=end)
        case "rejected":
            return rejected(text, tail=end)
        case "snoozed":
            return snoozed(delay_ms or 0, error=None if error is None else text, tail=end)
        case "cancelled":
            return cancelled(tail=end)
        case _:
            disk = full_disk(log)
            text = f"{text}; {disk}" if disk else text
            return failed(text, delay_ms=delay_ms, tail=end)


_NO_TEXT = (
    "The result contains a NUL or a lone surrogate, which is no text: "
    "decode the bytes properly or return base64."
)


def storable(result: str | None) -> bool:
    """Whether every engine can keep the JSON of a runner, which escapes all that is not ASCII."""
    if result is None or "\\u" not in result:
        return True
    try:
        encode_json(json.loads(result), "contents of the result", len(result))
    except InvalidArguments:
        return False
    return True


def clean(text: Any) -> str:
    """Text as every engine can keep it: a task can say anything."""
    return str(text).replace("\0", "").encode("utf-8", "replace").decode()
