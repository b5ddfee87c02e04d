"""Registries of what can be chosen by name: those of this tree, and extensions of other distributions or scripts.

A distribution names its extensions as entry points, in the group `lanikai.` and the registry's name. They are looked
up when a registry is asked, and imported when one is asked for by its name.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from inspect import getattr_static
from typing import Any, Self, TypeVar

from .config import ConfigError

__all__ = ["GROUP", "REGISTRIES", "Registry", "class_problem", "function_problem", "outside_points"]

GROUP = "lanikai."
"""The begin of every group of entry points that is read."""
HERE = "lanikai"
"""The origin of what this tree has."""
SCRIPT = "this program"
"""The origin of what a script or notebook has added."""
REGISTRIES: dict[str, Registry[Any]] = {}
"""The registries of the modules that have been imported, by name."""
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
T = TypeVar("T")


@cache
def outside_points() -> Mapping[str, list[EntryPoint]]:
    """The entry points of this environment in our groups, by group, in the order of their distributions' names."""
    found: dict[str, list[EntryPoint]] = {}
    for group in entry_points().groups:
        if group.startswith(GROUP):
            points = entry_points(group=group)
            found[group] = sorted(points, key=lambda point: (_distribution(point), point.name))
    return found


def _distribution(point: EntryPoint) -> str:
    dist = point.dist
    return "an unknown distribution" if dist is None else f"{dist.name} {dist.version}"


def class_problem(base: type, *needs: str) -> Callable[[str, Any], str]:
    """A check of an extension that is a class: what is wrong with it, in a few words, or nothing.

    `needs`: names that it has to define itself.
    """

    def problem(name: str, value: Any) -> str:
        if not (isinstance(value, type) and issubclass(value, base)):
            return f"it is no subclass of {base.__module__}.{base.__name__}"
        same = (one for one in needs if getattr_static(value, one) is getattr_static(base, one))
        left = sorted({*getattr(value, "__abstractmethods__", ()), *same})
        return f"{value.__name__} lacks {', '.join(left)}" if left else ""

    return problem


def function_problem(*parameters: str) -> Callable[[str, Any], str]:
    """A check of an extension that is a function of these parameters."""

    def problem(name: str, value: Any) -> str:
        wanted = f"a function of ({', '.join(parameters)})"
        if not callable(value):
            return f"it is not {wanted}"
        try:
            inspect.signature(value).bind(*parameters)
        except (TypeError, ValueError):
            return f"it cannot be called as {wanted}"
        return ""

    return problem


class Registry(MutableMapping[str, T]):
    """Choices by name. It is a mapping, whose names are those of this tree, of other distributions, and of the script.

    - `name`: the registry's. Entry points are in the group of that name. `kind`: one of its things, in words.
    - `problem`: says what is wrong with an extension, or "".
    - `own`: the choices of this tree; `| {...}` adds them.

    An extension that cannot be used is in the mapping's names. To ask for it raises ConfigError, in a line that names
    the distribution and the reason. `items` and `values` leave it out.
    """

    def __init__(self, name: str, kind: str, problem: Callable[[str, Any], str]) -> None:
        self.name, self.kind, self._problem = name, kind, problem
        self._own: dict[str, T] = {}
        self._added: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        REGISTRIES[name] = self

    def __or__(self, own: Mapping[str, T]) -> Self:
        """The registry with these choices of the tree."""
        self._own |= own
        return self

    def own_value(self, name: str) -> T:
        """A choice of the tree. A subclass may make it when it is asked for. Raises KeyError."""
        return self._own[name]

    def made(self, extension: Any) -> T:
        """The choice that an extension stands for: itself, unless a subclass makes one of it."""
        found: T = extension
        return found

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in outside_points().get(GROUP + self.name, []):
            found.setdefault(point.name, []).append(point)
        return found

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self.own_value(name)
        if name in self._added:
            return self._added[name]
        if name in self._loaded:
            return self._loaded[name]
        if name not in self._points:
            raise KeyError(name)
        point = self._points[name][0]
        if reason := self._fault(point):
            raise ConfigError(reason)
        return self._loaded[name]

    def _fault(self, point: EntryPoint) -> str:
        """Load an extension. Returns the line that says why it cannot be used, or ""."""
        reason = ""
        if not _NAME.fullmatch(point.name):
            reason = "a name has small letters, digits, - and _ alone"
        elif point.name in self._own:
            reason = f"lanikai has {_a(self.kind)} of that name"
        elif (first := self._points[point.name][0]) is not point:
            reason = f"{_distribution(first)} has one of that name too"
        else:
            try:
                value = point.load()
                reason = self._problem(point.name, value)
                if not reason:
                    self._loaded[point.name] = self.made(value)
            except Exception as error:  # whatever the module of somebody else raises
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if not reason:
            return ""
        return (
            f"{self.kind} {point.name!r} of {_distribution(point)} ({point.value}) cannot be used: {reason}"
        )

    def broken(self) -> list[str]:
        """A line for each extension of this registry that cannot be used."""
        lines = (self._fault(point) for points in self._points.values() for point in points)
        return [line for line in lines if line]

    def origin(self, name: str) -> str:
        """The origin of a name: `lanikai`, a distribution with its version, or the program that has added it."""
        if name in self._own:
            return HERE
        return SCRIPT if name in self._added else _distribution(self._points[name][0])

    def outside(self) -> list[EntryPoint]:
        """The entry points of other distributions."""
        return [point for points in self._points.values() for point in points]

    def added(self) -> Mapping[str, T]:
        """The extensions that this program has added."""
        return self._added

    def add(self, name: str, extension: Any) -> None:
        """Add an extension of a script or notebook; a second one of the same name takes the first one's place.

        Raises ConfigError for a name that is taken, and an extension that cannot be used.
        """
        reason = ""
        if not _NAME.fullmatch(name):
            reason = "a name has small letters, digits, - and _ alone"
        elif name in self._own or name in self._points:
            reason = f"{self.origin(name)} has {_a(self.kind)} of that name"
        reason = reason or self._problem(name, extension)
        if reason:
            raise ConfigError(f"{self.kind} {name!r} cannot be added: {reason}")
        self._added[name] = self.made(extension)

    def __setitem__(self, name: str, value: T) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added or name in self._points

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in (*self._points, *self._added) if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _usable(self) -> dict[str, T]:
        found: dict[str, T] = {}
        for name in self:
            try:
                found[name] = self[name]
            except ConfigError:  # `broken` tells
                continue
        return found

    def items(self) -> ItemsView[str, T]:
        """Those that can be used, with their names."""
        return self._usable().items()

    def values(self) -> ValuesView[T]:
        """Those that can be used."""
        return self._usable().values()

    def near(self, name: str) -> str:
        """` (did you mean 'x'?)`, or "" if nothing is near."""
        close = difflib.get_close_matches(name, self, n=1)
        return f" (did you mean {close[0]!r}?)" if close else ""


def _a(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
