"""Errors as answers: application/problem+json (RFC 9457), with the sentence a person would read.

`error` is the class of the error, by which a remote client raises it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from svcq import errors

MEDIA_TYPE = "application/problem+json"

# The first that fits; every error of svcq has one.
_STATUSES: tuple[tuple[type[errors.SvcqError], int], ...] = (
    (errors.NotFound, 404),
    (errors.NotPermitted, 403),
    (errors.InvalidInput, 422),
    (errors.Refused, 409),
    (errors.StoreFull, 507),
    (errors.StoreError, 503),
    (errors.Unreachable, 503),
    (errors.WaitTimeout, 504),
    (errors.SvcqError, 500),
)


class Problem(Exception):
    """A request that is answered with a status of its own, before any verb is called."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        kind: type[errors.SvcqError] = errors.InvalidInput,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.headers = dict(headers or {})


def answer(error: errors.SvcqError | Problem) -> Response:
    if isinstance(error, Problem):
        return _response(error.status, error.kind, str(error), error.headers)
    status = status_of(error)
    # Who is turned away for want of room should not keep some of it.
    headers = {"retry-after": "1", "connection": "close"} if status == 503 else {}
    more = {"job": error.job} if isinstance(error, errors.UniqueTaken) else {}
    return _response(status, type(error), str(error), headers, more)


def status_of(error: errors.SvcqError) -> int:
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def unexpected() -> Response:
    """What went wrong is in the service's own log, and nobody else's business."""
    sentence = "The service met an error of its own: its log says which; try again."
    return _response(500, errors.SvcqError, sentence, {})


def _response(
    status: int,
    kind: type[errors.SvcqError],
    sentence: str,
    headers: Mapping[str, str],
    more: Mapping[str, Any] | None = None,
) -> Response:
    word = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
    said = {
        "type": f"urn:svcq:{word}",
        "title": word.replace("-", " ").capitalize(),
        "status": status,
        "detail": sentence,
        "error": kind.__name__,
        **(more or {}),
    }
    return Response(
        json.dumps(said), status_code=status, headers=dict(headers), media_type=MEDIA_TYPE
    )
