"""The settings as people are shown them: as they would stand in the file, without passwords."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from svcq.config.load import config_file, default_home, load, parse, read_text
from svcq.config.settings import SETTINGS
from svcq.passwords import hide_password


def shown_values(home: Path | None = None) -> dict[str, Any]:
    """Every setting; a file that is wrong is refused."""
    config = load(home)
    said = said_values(home or default_home())
    values = {key: said.get(key, setting.default) for key, setting in SETTINGS.items()}
    if os.environ.get("SVCQ_STORE"):
        values["store"] = config.store
    values["store"] = hide_password(str(values["store"]))
    return values


def said_values(home: Path) -> dict[str, Any]:
    """What the file says, by dotted names."""
    file = str(config_file(home))
    flat: dict[str, Any] = {}
    for name, value in parse(read_text(file), file).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat
