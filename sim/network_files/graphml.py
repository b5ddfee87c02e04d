"""GraphML, as networkx and graph editors write it: a node of the graph is a router, an edge is a link.

A graph's node may have the attribute `nodes`: how many nodes of the network are at that router, 1 if it has none. Other
attributes are those of drawings and are not looked at. Source: the GraphML primer (graphml.graphdrawing.org).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from xml.parsers import expat

from lanikai.hdl.config import ConfigError

from ..user_files import at_line, quoted, read_text, whole
from .format import NetworkFormat, Place, PortCounter, Shape

__all__ = ["GraphMl"]

ATTRIBUTE = "nodes"


class GraphMl(NetworkFormat):
    """An undirected graph in GraphML. Routers are numbered, and ports given out, in the order of the file."""

    suffix: ClassVar[str] = ".graphml"
    title: ClassVar[str] = "GraphML"

    def read(self, path: Path, *, first_port: int) -> Shape:
        """As `NetworkFormat.read`."""
        import networkx

        text = read_text(path, "network =", ConfigError)
        seen = _Scan(path, text)
        try:
            graph = networkx.parse_graphml(text, force_multigraph=True)
        except Exception as fault:
            # Whatever the library finds in a file that is valid XML: it has many kinds of errors for it.
            raise ConfigError(f"network = {str(path)!r}: no graph in GraphML: {fault}") from None
        numbers = {name: i for i, name in enumerate(seen.nodes)}
        ports = PortCounter(first_port)
        nodes: list[Place] = []
        lines: dict[str, int] = {}
        for name, line in seen.nodes.items():
            given = str(graph.nodes[name].get(ATTRIBUTE, 1))
            count = whole(given, 0, 64)
            if count is None:
                raise at_line(
                    path,
                    line,
                    f"{ATTRIBUTE} = {quoted(given)} of node {quoted(name)}",
                    "a whole number from 0 to 64, the nodes at that router",
                    ConfigError,
                )
            for _ in range(count):
                lines[f"node {len(nodes)}"] = line
                nodes.append(ports.next(numbers[name]))
        links: list[tuple[Place, Place]] = []
        for source, target, line in seen.edges:
            lines[f"link {len(links)}"] = line
            links.append((ports.next(numbers[source]), ports.next(numbers[target])))
        return Shape(routers=len(numbers), nodes=tuple(nodes), links=tuple(links), lines=lines)


class _Scan:
    """The nodes and edges of a file with their lines, which the library does not keep. Raises ConfigError for what it
    would pass over: two nodes of one name, an edge to a node that there is not, a directed graph."""

    def __init__(self, path: Path, text: str) -> None:
        self.nodes: dict[str, int] = {}
        self.edges: list[tuple[str, str, int]] = []
        self._path, self._graphs = path, 0
        self._directed = False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._doctype
        try:
            self._parser.Parse(text.encode(), True)
        except expat.ExpatError as fault:
            raise at_line(
                path, fault.lineno, expat.ErrorString(fault.code), "XML that is well formed", ConfigError
            ) from None
        if not self._graphs:
            raise at_line(path, 1, "no element `graph`", "a file in GraphML has one", ConfigError)
        if not self.nodes:
            raise at_line(path, 1, "a graph without a node", "each node is a router", ConfigError)
        for source, target, line in self.edges:
            for name in (source, target):
                if name not in self.nodes:
                    raise at_line(
                        path, line, f"edge to {quoted(name)}", "the `id` of a node of the file", ConfigError
                    )
            if source == target:
                raise at_line(
                    path,
                    line,
                    f"an edge from {quoted(source)} to itself",
                    "an edge joins two nodes",
                    ConfigError,
                )

    def _doctype(self, *_: object) -> None:
        self._refuse("a document type", "none: GraphML needs no DOCTYPE")

    def _start(self, name: str, attributes: Mapping[str, Any]) -> None:
        kind = name.rpartition(":")[2]
        if kind == "graph":
            self._graphs += 1
            if self._graphs > 1:
                self._refuse("a second graph", "one graph, without graphs inside")
            if attributes.get("edgedefault") == "directed":
                self._directed = True
        elif kind == "node":
            identity = attributes.get("id", "")
            if not identity:
                self._refuse("a node without `id`", "each node has one")
            if identity in self.nodes:
                self._refuse(
                    f"node {quoted(identity)} for the second time",
                    f"an `id` of its own; line {self.nodes[identity]} has this one",
                )
            self.nodes[identity] = self._parser.CurrentLineNumber
        elif kind == "edge":
            directed = attributes.get("directed", "true" if self._directed else "false") == "true"
            if directed:
                self._refuse("a directed edge", 'edgedefault="undirected": a link is two-way')
            ends = attributes.get("source", ""), attributes.get("target", "")
            self.edges.append((*ends, self._parser.CurrentLineNumber))
        elif kind in ("hyperedge", "port"):
            self._refuse(f"element `{kind}`", "nodes and edges alone")

    def _refuse(self, found: str, right: str) -> None:
        raise at_line(self._path, self._parser.CurrentLineNumber, found, right, ConfigError)
