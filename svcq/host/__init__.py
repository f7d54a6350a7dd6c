"""What svcq needs of an operating system; chosen here, once, and nowhere else."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    from svcq.host.windows import (
        EXIT_CODES,
        check_private,
        create_private,
        data_directory,
        is_of_another,
        others_may_read,
        private_directory,
        public_socket,
        replace_durably,
        sync_directory,
    )
else:
    from svcq.host.linux import (
        EXIT_CODES,
        check_private,
        create_private,
        data_directory,
        is_of_another,
        others_may_read,
        private_directory,
        public_socket,
        replace_durably,
        sync_directory,
    )

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "EXIT_CODES",
    "check_private",
    "create_private",
    "data_directory",
    "is_of_another",
    "others_may_read",
    "private_directory",
    "public_socket",
    "replace_durably",
    "sync_directory",
    "write_private",
]


def write_private(path: Path, text: str) -> None:
    """Replace the file with `text`, readable by its owner alone: all of it or nothing, durably.

    A link is followed, so that a file kept elsewhere stays where its owner keeps it.
    """
    from pathlib import Path
    from secrets import token_hex

    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{token_hex(8)}.tmp")
    try:
        with open(create_private(draft), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        replace_durably(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
