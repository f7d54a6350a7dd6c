"""File systems of the system at hand: which are no place for a store."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_filesystems import Place, check_local, place_of
else:
    from svcq.host.linux_filesystems import Place, check_local, place_of

__all__ = ["Place", "check_local", "place_of"]
