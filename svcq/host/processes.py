"""Processes of the system at hand. Apart from the package itself, since few callers start any."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_processes import (
        MARKER,
        Child,
        Exit,
        Pen,
        Pens,
        Seen,
        adopt_orphans,
        boot_id,
        brand_of,
        bury_orphans,
        hold_lock,
        ignore_for_ourselves_alone,
        killed_for_memory_lately,
        left_behind,
        lock_is_held,
        look_at,
        parts_with_data,
        process_age,
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
    from svcq.host.linux_cgroups import Pen, Pens
    from svcq.host.linux_children import Child, Exit, adopt_orphans, bury_orphans, left_behind
    from svcq.host.linux_memory import killed_for_memory_lately
    from svcq.host.linux_processes import (
        boot_id,
        hold_lock,
        ignore_for_ourselves_alone,
        lock_is_held,
        parts_with_data,
        process_age,
        punch_hole,
        shell,
        spawn_detached,
        start_child,
    )
    from svcq.host.linux_trees import (
        MARKER,
        Seen,
        brand_of,
        look_at,
        process_born,
        resident_bytes,
        signal_tree,
        tree_of,
    )

__all__ = [
    "MARKER",
    "Child",
    "Exit",
    "Pen",
    "Pens",
    "Seen",
    "adopt_orphans",
    "boot_id",
    "brand_of",
    "bury_orphans",
    "hold_lock",
    "ignore_for_ourselves_alone",
    "killed_for_memory_lately",
    "left_behind",
    "lock_is_held",
    "look_at",
    "parts_with_data",
    "process_age",
    "process_born",
    "punch_hole",
    "resident_bytes",
    "shell",
    "signal_tree",
    "spawn_detached",
    "start_child",
    "tree_of",
]
