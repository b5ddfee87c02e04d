"""Topologies that have a name, such as `ring(8)`: one file each, one registry.

A new one is a file with a subclass of `Shape`, and a line in `TOPOLOGIES`.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from ..config import ConfigError
from ..registry import Registry, class_problem
from .dragonfly import Dragonfly
from .flattened_butterfly import FlattenedButterfly
from .grid import Mesh, Torus
from .hypercube import Hypercube
from .kary_tree import KaryTree
from .plain import Chain, Single, Tree
from .random_regular import RandomRegular
from .ring import Ring
from .shape import Shape

__all__ = ["TOPOLOGIES", "Shape", "topology_named", "topology_ranges"]

TOPOLOGIES = Registry[type[Shape]](
    "topologies", "topology", class_problem(Shape, "ports", "router_count", "joined")
) | {
    "router": Single,
    "chain": Chain,
    "tree": Tree,
    "mesh": Mesh,
    "torus": Torus,
    "ring": Ring,
    "hypercube": Hypercube,
    "flattened_butterfly": FlattenedButterfly,
    "kary_tree": KaryTree,
    "dragonfly": Dragonfly,
    "random_regular": RandomRegular,
}
"""The topologies, by the word that their names begin with."""

_NAME = re.compile(r"([a-z_]+)\s*\((.*)\)|([a-z_]+?)(\d{1,6}(?:x\d{1,6})*)")


def topology_ranges() -> str:
    """The names that there are, in one line."""
    return ", ".join(shape.ranges for shape in TOPOLOGIES.values())


@lru_cache(maxsize=256)
def topology_named(name: str) -> Shape:
    """The topology `name`: its word and parameters, `ring(8)` or `torus(4x4)`, in short `ring8` or `torus4x4`.

    Parameters come in their order, or as `name=value`. Those after the first one stand after commas, and the numbers of
    a list have an x between them. Raises ConfigError, in one line, for a name that there is not.
    """
    found = _NAME.fullmatch(name.strip())
    word = (found[1] or found[3]) if found else re.split(r"[^a-z_]", name.strip(), maxsplit=1)[0]
    if word not in TOPOLOGIES:
        near = difflib.get_close_matches(word, TOPOLOGIES, n=1)
        hint = f" (did you mean {TOPOLOGIES[near[0]].ranges.split()[0]}?)" if near else ""
        raise ConfigError(f"no such topology{hint}; valid topologies: {topology_ranges()}")
    shape = TOPOLOGIES[word]
    if found is None:
        raise ConfigError(f"no numbers that could be read; {shape.ranges}")
    try:
        return shape(**_values(shape, found[2], found[4]))
    except ConfigError as error:
        message = str(error).removeprefix(f"{shape.__name__}: ").removeprefix(f"{shape.__name__}.")
        raise ConfigError(f"{message}; {shape.ranges}") from None


def _values(shape: type[Shape], inside: str | None, short: str | None) -> dict[str, int | tuple[int, ...]]:
    """The values of a shape's fields. Raises ConfigError."""
    fields = shape.model_fields
    lists = [name for name, about in fields.items() if about.annotation is not int]
    if short is not None:
        numbers = short.split("x")
        parts = [short] if lists else numbers
    else:
        parts = [part.strip() for part in inside.split(",")] if inside and inside.strip() else []
    values: dict[str, int | tuple[int, ...]] = {}
    for number, part in enumerate(parts):
        key, equals, text = part.rpartition("=")
        key = key.strip() if equals else next(iter([*fields][number : number + 1]), "")
        if not key:
            raise ConfigError(f"{len(parts)} parameters: at most {', '.join(fields)}")
        if key not in fields:
            raise ConfigError(f"no parameter {key!r}: it has {', '.join(fields)}")
        if key in values:
            raise ConfigError(f"{key} is given twice")
        text = text.strip()
        if not re.fullmatch(r"\d{1,6}(x\d{1,6})*" if key in lists else r"\d{1,6}", text):
            kind = "numbers with x between them" if key in lists else "a number"
            raise ConfigError(f"{key} = {text!r}: {kind}")
        values[key] = tuple(map(int, text.split("x"))) if key in lists else int(text)
    missing = [name for name, about in fields.items() if about.is_required() and name not in values]
    if missing:
        raise ConfigError(f"{missing[0]} is missing")
    return values
