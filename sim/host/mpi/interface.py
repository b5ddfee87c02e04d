"""MPI as a host interface: ranks on the GM library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...inside.deliveries import Observed
from ..gm.interface import GmInterface
from ..gm.library import Gm
from .comm.intracomm import Intracomm
from .world import start_mpi

__all__ = ["MpiInterface"]


class MpiInterface(GmInterface):
    """A rank on each node that is named, above a `Gm` library on every node; a program is given its `world`."""

    @classmethod
    async def open(cls, libraries: Sequence[Gm], nodes: Sequence[int], **settings: Any) -> list[Any]:
        """The world of every rank; settings as of `start_mpi`."""
        return [*await start_mpi(libraries, nodes, **settings)]

    @classmethod
    def observed_program(cls, opened: Intracomm) -> Sequence[Observed]:
        """The rank: calls that wait."""
        return (opened.process,)
