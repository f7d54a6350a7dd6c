"""Lets `pip install --editable` offer tray/ as `svcq_tray`, which hatchling alone cannot.

An editable install puts this folder on Python's path, where the package is called `tray`; a
package of one line, installed beside it, gives it its other name.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ALIAS = "import tray\n\n__path__ = tray.__path__\n"


class EditableTray(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        if version == "editable":
            alias = self.folder / "__init__.py"
            alias.write_text(ALIAS)
            build_data["force_include_editable"] = {str(alias): "svcq_tray/__init__.py"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self.folder)
