"""The import statements of the tree's modules, and circles among them.

Every statement counts: at the top of a module, in a function, and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

__all__ = ["PACKAGES", "Modules", "circles", "read_modules", "rooms"]

PACKAGES = ("constraints", "hdl", "firmware", "sim", "api")
"""The layers of `lanikai`, each of which may import those before it."""


@dataclass
class Modules:
    """The modules of a tree.

    - `lines`: for each file, as a path from the root, how many lines it has.
    - `imports`: for each file, the files that it imports.
    """

    lines: dict[str, int] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)


def read_modules(root: Path) -> Modules:
    """Read all modules of `PACKAGES` below `root`."""
    trees, modules = {}, Modules()
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        trees[name] = ast.parse(text)
        modules.lines[name] = text.count("\n")
    files = {_dotted(name): name for name in trees}
    for name, tree in trees.items():
        found = {files[module] for module in _imported(tree, name, files) if module in files}
        modules.imports[name] = found - {name}
    return modules


def _dotted(name: str) -> str:
    """A file's name as an import has it."""
    parts = PurePosixPath(name).with_suffix("").parts
    return ".".join(("lanikai", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _imported(tree: ast.Module, name: str, files: Mapping[str, str]) -> Iterator[str]:
    """The modules that a file imports, by dotted name. For `from package import module` it is the module."""
    package = ("lanikai", *PurePosixPath(name).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*start, *([node.module] if node.module else [])))
            for alias in node.names:
                module = f"{base}.{alias.name}"
                yield module if module in files else base


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Sets of nodes that can all be reached from one another, each sorted; none if there is no circle.

    `edges`: for each node the nodes that it leads to. A node that leads to itself alone is no circle.
    """
    reach = {node: _reached(node, edges) for node in edges}
    found = {
        tuple(sorted({node, *(other for other in reach[node] if node in reach.get(other, ()))}))
        for node in edges
        if node in reach[node]
    }
    return sorted(list(one) for one in found if len(one) > 1)


def _reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    """All that one or more edges lead to."""
    found: set[str] = set()
    left = [*edges.get(start, ())]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += edges.get(node, ())
    return found


def rooms(modules: Modules, folder: str) -> dict[str, set[str]]:
    """A folder's sub-folders, each as a whole, and its files: for each of them the others that it imports. A package's
    own `__init__.py`, which shows what is inside, is none."""
    edges: dict[str, set[str]] = {}
    for name, imported in modules.imports.items():
        here = _room(name, folder)
        for other in imported:
            there = _room(other, folder)
            if here and there and here != there:
                edges.setdefault(here, set()).add(there)
    return edges


def _room(name: str, folder: str) -> str | None:
    """The sub-folder or file of a folder in which a file is; None for a file elsewhere."""
    if not name.startswith(f"{folder}/"):
        return None
    room = name.removeprefix(f"{folder}/").split("/")[0]
    return None if room == "__init__.py" else room
