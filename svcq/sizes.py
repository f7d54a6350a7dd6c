"""Numbers of bytes, as people read them."""

from __future__ import annotations


def format_size(n: int) -> str:
    """`12 KiB`, `213 MiB`, `1.5 GiB`."""
    if n >= 1 << 30:
        return f"{n / (1 << 30):,.1f} GiB"
    return f"{n >> 20:,} MiB" if n >= 1 << 20 else f"{n >> 10:,} KiB"
