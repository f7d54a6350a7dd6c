"""JSON as people write it, without what json forgives: which of two values for a key was meant?"""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str) -> Any:
    """What the text says; ValueError with a reason when it is not JSON, or has a key twice."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in an object")
    return made


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number that JSON knows")
