"""What is here runs on two systems: `inside` on Windows, all else on the one that has Wine."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    collect_ignore = ["test_under_wine.py"]
else:
    collect_ignore = ["inside"]
