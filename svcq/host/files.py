"""Files that others may have a hand in, on the system at hand."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_files import (
        open_anew,
        open_log,
        open_plain_file,
        read_at,
        text_of,
        write_at,
    )
else:
    from svcq.host.linux_files import (
        open_anew,
        open_log,
        open_plain_file,
        read_at,
        text_of,
        write_at,
    )

__all__ = ["open_anew", "open_log", "open_plain_file", "read_at", "text_of", "write_at"]
