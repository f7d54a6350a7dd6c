"""`python -m svcq_tray`, which `svcq tray` is, too."""

from __future__ import annotations

import sys

from svcq.cli import run

if __name__ == "__main__":
    sys.exit(run(["tray", *sys.argv[1:]]))
