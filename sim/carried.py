"""Code of the user's that goes into other processes: functions and classes of a script, a notebook cell, `python -c`.

Such code is in no module that another process could import, so cloudpickle carries it by value. The lines of its source
go with it where no file has them, for tracebacks and the debugger.
"""

from __future__ import annotations

import io
import linecache
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .errors import UserError
from .extensions import added, take

__all__ = ["pack", "source_lines", "unpack"]


def pack(content: Any) -> bytes:
    """`content` for another process of this machine, the sources of its code, and all that this program has added to
    registries. Raises UserError in a line for what cannot be carried, an open file say."""
    import cloudpickle

    things = added()

    def with_file(code: CodeType) -> tuple[Any, ...]:
        # cloudpickle forgets where code is from, which tracebacks and the debugger want to know.
        make, arguments = table[CodeType](code)
        return _code, (_place(code.co_filename), make, arguments)

    class Pickler(cloudpickle.Pickler):
        dispatch_table = cloudpickle.Pickler.dispatch_table.new_child({CodeType: with_file})

    table, stream = cloudpickle.Pickler.dispatch_table, io.BytesIO()
    pickler = Pickler(stream)
    try:
        pickler.dump((things, content))
    except Exception as error:
        text = " ".join(str(error).split())
        raise UserError(
            f"this code cannot go to the simulator's process: {type(error).__name__}: {text}"
        ) from None
    return pickle.dumps((stream.getvalue(), source_lines([things, content])))


def unpack(data: bytes) -> Any:
    """The content of `pack`. Its sources are from then on shown in tracebacks, and this process has the same
    extensions."""
    content, sources = pickle.loads(data)
    for name, lines in sources.items():
        # Without a time of change the entry is never looked up on the disk.
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    things, value = pickle.loads(content)
    take(things)
    return value


def source_lines(content: Any) -> dict[str, list[str]]:
    """Lines by file name, of the code in `content` that no file on the disk has."""
    names = {code.co_filename for code in _codes([content])}
    return {name: lines for name in sorted(names) if not os.path.exists(name) and (lines := _lines(name))}


def _place(name: str) -> str:
    """The name of a source, whole if it is a file: the other process has another working directory."""
    return os.path.abspath(name) if os.path.exists(name) else name


def _code(name: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    """Code that was carried, from the source `name`."""
    return make(*arguments).replace(co_filename=name)


def _lines(name: str) -> list[str]:
    """The lines of a source that is no file: a notebook's cell, which `linecache` knows, or the text of `-c`."""
    if lines := linecache.getlines(name):
        return lines
    given = sys.orig_argv
    if name == "<string>" and "-c" in given[:-1]:
        return given[given.index("-c") + 1].splitlines(keepends=True)
    return []


def _codes(values: Iterable[Any]) -> Iterator[CodeType]:
    """The code of functions and classes in `values`, of what is inside of them, and of `__main__`'s that they name."""
    left, seen = [*values], set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            yield value.__code__
            left += [value.__globals__.get(name) for name in value.__code__.co_names]
            left += [cell.cell_contents for cell in value.__closure__ or () if _full(cell)]
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, type) and value.__module__ == "__main__":
            left += vars(value).values()
        elif isinstance(value, property | staticmethod | classmethod):
            left += [getattr(value, name, None) for name in ("fget", "fset", "__func__")]


def _full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
