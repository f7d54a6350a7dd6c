"""Processes of the system at hand. Apart from the package itself, since few callers start any."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_processes import (
        MARKER,
        Child,
        Exit,
        Seen,
        boot_id,
        hold_lock,
        ignore_for_ourselves_alone,
        lock_is_held,
        parts_with_data,
        process_born,
        punch_hole,
        resident_bytes,
        shell,
        signal_tree,
        spawn_detached,
        start_child,
        tree_of,
    )
else:
    from svcq.host.linux_processes import (
        MARKER,
        Child,
        Exit,
        Seen,
        boot_id,
        hold_lock,
        ignore_for_ourselves_alone,
        lock_is_held,
        parts_with_data,
        process_born,
        punch_hole,
        resident_bytes,
        shell,
        signal_tree,
        spawn_detached,
        start_child,
        tree_of,
    )

__all__ = [
    "MARKER",
    "Child",
    "Exit",
    "Seen",
    "boot_id",
    "hold_lock",
    "ignore_for_ourselves_alone",
    "lock_is_held",
    "parts_with_data",
    "process_born",
    "punch_hole",
    "resident_bytes",
    "shell",
    "signal_tree",
    "spawn_detached",
    "start_child",
    "tree_of",
]
