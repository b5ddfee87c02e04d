"""BookSim's `anynet` files: a line a router, with what it is joined to.

    router 0 node 0 node 1 router 1
    router 1 node 2 router 0

A number behind a neighbour is the latency of that link in cycles, 1 if it is left out. A link need not stand at both of
its ends. A line may begin with a node, too. Source: the manual of BookSim 2.0, section on `anynet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from lanikai.hdl.config import ConfigError

from ..user_files import at_line, quoted, read_data_lines, whole
from .format import NetworkFormat, PortCounter, Shape

__all__ = ["Anynet"]

_MOST = {"router": 4095, "node": 1023}
_Element = tuple[str, int]


class Anynet(NetworkFormat):
    """The `anynet` topology of BookSim. All links have one latency; ports are given out in the order of the file."""

    suffix: ClassVar[str] = ".anynet"
    title: ClassVar[str] = "BookSim's anynet"

    def read(self, path: Path, *, first_port: int) -> Shape:
        """As `NetworkFormat.read`."""
        homes: dict[int, tuple[int, int]] = {}  # node: its router, and the line
        joined: dict[tuple[int, int], int] = {}  # two routers, the lower one first: the line
        latencies: dict[frozenset[_Element], tuple[int, int]] = {}
        last = {"router": -1, "node": -1}
        line_of_last = {"router": 0, "node": 0}
        seen: dict[str, set[int]] = {"router": set(), "node": set()}
        one: tuple[int, int, str] | None = (
            None  # the latency of all links, the line that has it first, its words
        )
        for number, text in read_data_lines(path, "network =", ConfigError):
            (head, _), *others = _elements(path, number, text)
            if not others:
                raise _bad(
                    path, number, f"{head[0]} {head[1]} alone", "neighbours follow, as in `router 0 node 0`"
                )
            for element, written in [(head, None), *others]:
                latency = written or 1
                if element[1] > last[element[0]]:
                    last[element[0]], line_of_last[element[0]] = element[1], number
                seen[element[0]].add(element[1])
                if element is head:
                    continue
                pair = frozenset((head, element))
                kinds = sorted((head[0], element[0]))
                if len(pair) == 1:
                    raise _bad(path, number, f"router {head[1]} is joined to itself", "name another router")
                if kinds == ["node", "node"]:
                    raise _bad(
                        path, number, f"node {head[1]} is joined to node {element[1]}", "a node has a router"
                    )
                if pair in latencies and latencies[pair][0] != latency:
                    raise _bad(
                        path,
                        number,
                        f"latency {latency} from {head[0]} {head[1]} to {element[0]} {element[1]}",
                        f"line {latencies[pair][1]} has {latencies[pair][0]}, and a link has one",
                    )
                latencies.setdefault(pair, (latency, number))
                words = f"{element[0]} {element[1]} with latency {latency}{'' if written else ' (none is written)'}"
                one = one or (latency, number, words)
                if latency != one[0]:
                    right = (
                        f"line {one[1]} has {one[2]}; all links here have the same one, those to nodes too"
                    )
                    raise _bad(path, number, words, right)
                if kinds == ["node", "router"]:
                    node, router = sorted((head, element))
                    before = homes.setdefault(node[1], (router[1], number))
                    if before[0] != router[1]:
                        raise _bad(
                            path,
                            number,
                            f"node {node[1]} at router {router[1]}",
                            f"it is at router {before[0]} by line {before[1]}, and a node has one router",
                        )
                else:
                    joined.setdefault((min(head[1], element[1]), max(head[1], element[1])), number)
        for kind in ("router", "node"):
            missing = set(range(last[kind] + 1)) - seen[kind]
            if last[kind] < 0:
                raise ConfigError(
                    f"network = {str(path)!r}: there is no {kind}: `router 0 node 0` joins the first two"
                )
            if missing:
                raise _bad(
                    path,
                    line_of_last[kind],
                    f"{kind} {last[kind]}, and no line has {kind} {min(missing)}",
                    f"{kind}s have the numbers from 0 on, without a gap",
                )
        ports = PortCounter(first_port)
        nodes = tuple(ports.next(homes[node][0]) for node in range(last["node"] + 1))
        links = tuple((ports.next(first), ports.next(second)) for first, second in joined)
        return Shape(
            routers=last["router"] + 1,
            nodes=nodes,
            links=links,
            delay_cycles=one[0] - 1 if one else None,
            lines={f"node {node}": line for node, (_, line) in homes.items()}
            | {f"link {i}": line for i, line in enumerate(joined.values())},
        )


def _elements(path: Path, number: int, text: str) -> Iterator[tuple[_Element, int | None]]:
    """Each element of a line, with the latency behind it (None where there is none)."""
    words = text.split()
    at = 0
    while at < len(words):
        kind = words[at]
        if kind not in _MOST:
            raise _bad(path, number, quoted(kind), "`router` or `node`, and its number")
        name = words[at + 1] if at + 1 < len(words) else ""
        which = whole(name, 0, _MOST[kind])
        if which is None:
            found = f"{kind} {quoted(name)}" if name else f"{kind} without a number"
            raise _bad(path, number, found, f"a {kind}'s number, 0 to {_MOST[kind]}")
        at += 2
        latency: int | None = None
        if at < len(words) and words[at] not in _MOST:
            given = whole(words[at], 1, 65)
            if given is None or at == 2:
                right = "the latency of a link in cycles, 1 to 65" if at > 2 else "`router` or `node`"
                raise _bad(path, number, quoted(words[at]), right)
            latency = given
            at += 1
        yield (kind, which), latency


def _bad(path: Path, line: int, found: str, right: str) -> Exception:
    return at_line(path, line, found, right, ConfigError)
