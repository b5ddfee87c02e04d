"""The page of MPI calls: each with its signature and meaning, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lanikai.sim.host.mpi import MPI

CLASSES = {
    "Intracomm": "A communicator: `world`, which a program is given, and those made from it",
    "Cartcomm": "A grid (`world.Create_cart`), which has the calls of a communicator too",
    "Group": "A group of ranks (`comm.Get_group`)",
    "Request": "A request: the result of `Isend`, `Irecv` and other calls that begin something",
    "Prequest": "A persistent request (`Send_init`, `Recv_init`), which has the calls of a request too",
    "Message": "A message that was found (`Mprobe`)",
    "Status": "A status, which a receive fills",
    "Op": "An operation of reductions (`MPI.SUM`)",
}
"""Classes with calls, and their headings in the order of the page."""


def page() -> str:
    """The text of `mpi-calls.md`."""
    lines = [
        "# MPI calls and their signatures",
        "",
        "*Made by `docs/generate.py` from `sim/host/mpi/`.* [mpi.md](mpi.md) says what holds for all calls, and "
        "[a guide](guides/mpi-program.md) leads to a first program.",
        "",
        "Names and arguments are those of mpi4py. A call marked `await` is a coroutine. `buf`, `sendbuf` and `recvbuf` "
        "are NumPy arrays, `bytes`, `bytearray`, or a list of array, count and type. Without a type the array's own "
        "counts. Calls in lower case take any object that can be pickled.",
        "",
    ]
    seen: set[str] = set()
    for name, heading in CLASSES.items():
        lines += [f"## `{name}`", "", f"{heading}.", "", "| call | what it does |", "|---|---|"]
        for call, function, wraps in calls(getattr(MPI, name)):
            if name in ("Cartcomm", "Prequest") and call in seen:
                continue
            seen.add(call)
            lines.append(f"| {signature(call, function, wraps)} | {meaning(function)} |")
        lines.append("")
    lines += [
        "## The module `MPI`",
        "",
        "`from lanikai.sim.host.mpi import MPI`.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    lines += [
        f"| {signature('MPI.' + name, getattr(MPI, name), None)} | {meaning(getattr(MPI, name))} |"
        for name in sorted(MPI.__all__)
        if inspect.isfunction(getattr(MPI, name))
    ]
    constants = sorted(name for name in MPI.__all__ if name.isupper())
    lines += ["", "Constants: " + ", ".join(f"`{name}`" for name in constants) + ".", ""]
    return "\n".join(lines)


def documented() -> set[str]:
    """The calls that programs may use: those of the table in `mpi.md`."""
    part = (Path(__file__).parent / "mpi.md").read_text().partition("\n## Calls\n")[2].partition("\n## ")[0]
    return {
        name for line in part.splitlines() if line.startswith("| ") for name in re.findall(r"`(\w+)`", line)
    }


def calls(kind: type) -> Iterator[tuple[str, Any, type | None]]:
    """The public methods of a class, those of its bases too: name, function, and the kind of method it is."""
    names = {name for base in kind.__mro__[:-1] for name in vars(base)} & documented()
    for name in sorted(names, key=lambda one: (one.casefold().lstrip("i"), one)):
        raw = inspect.getattr_static(kind, name)
        function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
        if inspect.isfunction(function) and function.__doc__:
            yield name, function, type(raw) if isinstance(raw, classmethod | staticmethod) else None


def signature(name: str, function: Any, wraps: type | None) -> str:
    """The call as a program writes it, with the names and defaults of its arguments."""
    given = list(inspect.signature(function).parameters.values())
    if wraps is not staticmethod and given and given[0].name in ("self", "cls"):
        given = given[1:]
    words = []
    for one in given:
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        words.append(
            star + one.name + ("" if one.default is one.empty else f"={default(one.name, one.default)}")
        )
    if wraps is not None:
        name = f"MPI.{function.__qualname__}"
    wait = "await " if inspect.iscoroutinefunction(function) else ""
    return f"`{wait}{name}({', '.join(words)})`"


def default(name: str, value: Any) -> str:
    """The default of an argument: by its name in `MPI`, where it has one there."""
    for wildcard in ("ANY_SOURCE", "ANY_TAG"):
        if name.endswith(wildcard[4:].lower()) and value == getattr(MPI, wildcard):
            return wildcard
    return next(
        (one for one in MPI.__all__ if isinstance(value, MPI.Op) and getattr(MPI, one) is value), repr(value)
    )


def meaning(function: Any) -> str:
    """The first paragraph of the docstring, in one line."""
    text = inspect.getdoc(function) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
