"""The command that installs an extra of the package, for the messages that name what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .paths import checkout

__all__ = ["install_command"]


def install_command(extra: str = "fpga") -> str:
    """The command that installs what an extra names into the environment of this Python."""
    pip = os.path.relpath(Path(sys.executable).parent / "pip")
    if pip.startswith(".."):
        pip = os.path.abspath(pip)
    root = checkout()
    if root is None:
        return f"{pip} install 'lanikai[{extra}]'"
    place = "." if root == Path.cwd() else str(root)
    return f"{pip} install -e '{place}[{extra}]'"
