"""Follows a guide of `docs/guides/` in a copy of the tree, as a reader would: files are written, lines are added.

A guide says "Put this into `FILE`" before a block that is the file. It says "In `FILE` ... `NAME`:" before a block with
lines for the mapping NAME there; an import among them goes to the other imports.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .references import ROOT

__all__ = ["GUIDES", "command", "copy_tree", "follow", "output"]

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
FILE = re.compile(r"^Put this into `([\w./]+)`.*?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINES = re.compile(r"^In `([\w./]+)` [^`]*`(\w+)`:\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^```text\n\$ (.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
"""The command in which a guide ends, and its output."""


def copy_tree(folder: Path) -> None:
    """Put a copy of the package into `folder`, under the name that it is imported by."""
    package = folder / "lanikai"
    package.mkdir()
    for part in ("api", "constraints", "firmware", "hdl", "sim"):
        shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "lanikai" / "__init__.py", package)


def follow(guide: Path, folder: Path) -> list[Path]:
    """Do what the guide says in the copy in `folder`. Returns the files that it has the reader write."""
    text, written = guide.read_text(), []
    for name, content in FILE.findall(text):
        path = folder / "lanikai" / name if "/" in name else folder / name
        assert not path.exists(), f"{guide.name}: {name} is there already"
        path.write_text(content)
        written.append(path)
    for name, mapping, block in LINES.findall(text):
        path = folder / "lanikai" / name
        lines = path.read_text().splitlines(keepends=True)
        for line in filter(str.strip, block.splitlines(keepends=True)):
            if line.startswith("from "):
                place = next(number for number, one in enumerate(lines) if one.startswith("from ."))
            else:
                start = next(number for number, one in enumerate(lines) if re.match(rf"{mapping}\b", one))
                place = 1 + next(n for n in range(start, len(lines)) if lines[n].rstrip().endswith("{"))
            lines.insert(place, line)
        path.write_text("".join(lines))
    return written


def command(guide: Path) -> str:
    """The command in which the guide ends."""
    return COMMAND.findall(guide.read_text())[-1][0]


def output(guide: Path) -> str:
    """The output of that command, as the guide shows it."""
    return COMMAND.findall(guide.read_text())[-1][1]
