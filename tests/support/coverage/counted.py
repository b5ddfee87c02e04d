"""Verilator's counts of one run, and the Verilog that it counted in, told in places of the source.

Verilator writes a line a point: keys and values between the bytes 1 and 2, and the count.

- A point of a line or branch has the lines of its block (`S`), those of blocks inside left out.
- A point of a toggle has a signal, a bit and a direction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .marks import PREFIX

__all__ = ["Source", "Toggle", "branches_run", "keep_sources", "kept_sources", "toggles"]

SOURCES_FILE = "places.json"
"""File of a model that says where its Verilog comes from."""

_POINT = re.compile(r"C '(.*)' (\d+)")
_FIELD = re.compile("\x01([^\x01\x02]+)\x02([^\x01]*)")
_ENCODED = re.compile(r"__0([0-9A-F]{2})")
_MODULE = re.compile(r"module (?:\\(\S+) |(\w+) ?)\(")
_SRC = re.compile(r'\(\* src = "(hdl/[^":]+):(\d+)" \*\)')
_VARIABLE = re.compile(r"(?:input|output|wire|reg) (?:\[[^]]*\] )?(?:\\(\S+) |(\w+))")
_MARK = re.compile(rf"\b({PREFIX}[0-9a-f]{{12}})\b.* <?= 1'h1;")
_COPY = re.compile(r"\$\d+$")


@dataclass
class Source:
    """A file of Verilog.

    - `signals`: file and line of the RTL, by module and signal.
    - `marks`: the marks that are set, by line.
    """

    signals: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    marks: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class Toggle:
    """A direction (`rises`) of bit `bit` of the signal `name`, which is made in `line` of `file`."""

    file: str
    line: int
    name: str
    bit: int
    rises: bool


def keep_sources(folder: Path) -> None:
    """Write down the places in the Verilog of a model that is being built in `folder`.

    The blocks that it is made of are there only for that time.
    """
    paths = [
        path for ending in ("*.v", "*.sv", "blocks/*/*.v", "blocks/*/*.sv") for path in folder.glob(ending)
    ]
    read = {path.name: _read(path.read_text()) for path in paths}
    kept = {
        name: {
            "signals": [[*key, *place] for key, place in one.signals.items()],
            "marks": [*one.marks.items()],
        }
        for name, one in read.items()
    }
    (folder / SOURCES_FILE).write_text(json.dumps(kept))


def kept_sources(folder: Path) -> dict[str, Source]:
    """The files of Verilog of the model in `folder`, by name."""
    return {
        name: Source(
            {(module, signal): (file, line) for module, signal, file, line in one["signals"]},
            dict(one["marks"]),
        )
        for name, one in json.loads((folder / SOURCES_FILE).read_text()).items()
    }


def _read(text: str) -> Source:
    source, module, place = Source(), "", None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if found := _MODULE.match(stripped):
            module = found[1] or found[2]
        elif found := _SRC.fullmatch(stripped):
            place = (found[1], int(found[2]))
            continue
        elif found := _VARIABLE.match(stripped):
            name = found[1] or found[2]
            if place:
                source.signals[module, name] = place
                continue  # a port has a second line
        elif found := _MARK.search(stripped):
            source.marks[number] = found[1]
        place = None
    return source


def _points(data: Path) -> Iterator[tuple[dict[str, str], int]]:
    for line in data.read_text(errors="replace").splitlines():
        if found := _POINT.fullmatch(line):
            yield dict(_FIELD.findall(found[1])), int(found[2])


def _decoded(name: str) -> str:
    """A name as the Verilog has it: Verilator writes odd characters in hexadecimal."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), name)


def branches_run(data: Path, sources: dict[str, Source]) -> dict[str, bool]:
    """The marks in a run's Verilog, and whether their branch was taken."""
    taken = {mark: False for source in sources.values() for mark in source.marks.values()}
    for point, count in _points(data):
        source = sources.get(point["f"])
        if source and count and point.get("t") in ("line", "branch"):
            for number in _lines(point.get("S", "")):
                if number in source.marks:
                    taken[source.marks[number]] = True
    return taken


def _lines(text: str) -> Iterator[int]:
    """The lines of a list such as `48,50-52`."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def toggles(data: Path, sources: dict[str, Source]) -> Iterator[tuple[Toggle, bool]]:
    """The toggles of a run that have a place in the RTL, and whether each happened."""
    for point, count in _points(data):
        if point.get("t") != "toggle" or point["f"] not in sources:
            continue
        module = _decoded(point["page"].partition("/")[2])
        text, _, direction = point["o"].rpartition(":")
        signal, _, bits = _decoded(text).partition("[")
        place = sources[point["f"]].signals.get((module, signal))
        if place and not signal.startswith(PREFIX):
            # A bit of an array of vectors has two numbers; only the last is one of a bit.
            bit = int(bits.rstrip("]").rpartition("[")[2] or 0)
            yield Toggle(*place, _COPY.sub("", signal), bit, direction == "0->1"), count > 0
