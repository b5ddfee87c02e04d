"""Networks in JSON, whose schema `lanikai schema network` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from lanikai.hdl.config import ConfigError
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from ..user_files import read_model
from .format import NetworkFormat, Shape

__all__ = ["JsonFormat", "NetworkObject"]

LISTED = 256
"""Most nodes and links whose lines are looked up: each look-up reads the list up to it."""
_Router = Annotated[StrictInt, Field(ge=0, le=4095, description="number of a router")]
_Port = Annotated[StrictInt, Field(ge=0, le=255, description="port of that router")]
_Place = Annotated[tuple[_Router, _Port], Field(description="router and port")]


class NetworkObject(BaseModel):
    """A network of the user's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: str = Field("", alias="$schema", description="the schema's address; for editors")
    routers: StrictInt = Field(1, ge=1, le=4096, description="routers, numbered from 0")
    nodes: tuple[_Place, ...] = Field((), description="place of each node, numbered from 0")
    links: tuple[tuple[_Place, _Place], ...] = Field((), description="the two places that each link joins")
    tables: tuple[tuple[Annotated[StrictInt, Field(ge=-1, le=255)], ...], ...] = Field(
        (), description="for each router its port for each node, -1 for none; empty: shortest paths"
    )


class JsonFormat(NetworkFormat):
    """The keys of `Network`: `routers`, `nodes`, `links`, `tables`."""

    suffix: ClassVar[str] = ".json"
    title: ClassVar[str] = "JSON"

    def read(self, path: Path, *, first_port: int) -> Shape:
        """As `NetworkFormat.read`; the file names all ports."""
        found, lines = read_model(path, "network =", NetworkObject, ConfigError)
        numbers = {}
        if len(found.nodes) + len(found.links) <= LISTED:
            for kind in ("node", "link"):
                for i in range(len(getattr(found, f"{kind}s"))):
                    numbers[f"{kind} {i}"] = lines.of((f"{kind}s", i))
        return Shape(
            routers=found.routers, nodes=found.nodes, links=found.links, tables=found.tables, lines=numbers
        )
