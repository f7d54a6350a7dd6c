"""Text where panels and daemons take markup."""

from __future__ import annotations


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
