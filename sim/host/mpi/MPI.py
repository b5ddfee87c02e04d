"""Names of mpi4py's module MPI, as far as they are here: `from lanikai.sim.host.mpi import MPI`.

There is no COMM_WORLD: ranks share one Python process, and each is given its own world (`world.run_ranks`).
"""

from __future__ import annotations

from typing import Any

from .comm.attributes import TAG_UB
from .comm.grid import Compute_dims
from .comm.group import CONGRUENT, IDENT, SIMILAR, UNEQUAL, Group
from .comm.intracomm import Cartcomm, Intracomm
from .comm.message import Message
from .comm.point_to_point import BSEND_OVERHEAD
from .data.buffers import IN_PLACE
from .data.datatypes import DATATYPES, Datatype
from .data.ops import BAND, BOR, BXOR, LAND, LOR, LXOR, MAX, MAXLOC, MIN, MINLOC, PROD, SUM, Op
from .data.request import Prequest, Request
from .data.status import UNDEFINED, Status
from .errors import MpiError as Exception
from .matching import ANY_SOURCE, ANY_TAG, PROC_NULL

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "BAND",
    "BOR",
    "BSEND_OVERHEAD",
    "BXOR",
    "COMM_NULL",
    "CONGRUENT",
    "IDENT",
    "IN_PLACE",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MAXLOC",
    "MIN",
    "MINLOC",
    "PROC_NULL",
    "PROD",
    "SIMILAR",
    "SUM",
    "TAG_UB",
    "UNDEFINED",
    "UNEQUAL",
    "Cartcomm",
    "Comm",
    "Compute_dims",
    "Datatype",
    "Exception",
    "Group",
    "Intracomm",
    "Message",
    "Op",
    "Prequest",
    "Request",
    "Status",
]

Comm = Intracomm
"""mpi4py's class of all communicators: here there is one kind."""
COMM_NULL = None
"""No communicator, where Split, Create and Create_cart leave a rank out."""


def __getattr__(name: str) -> Any:
    """The element types: INT, DOUBLE, DOUBLE_INT, ..."""
    if name in DATATYPES:
        return DATATYPES[name]
    if name in ("COMM_WORLD", "COMM_SELF"):
        raise AttributeError(f"MPI.{name}: ranks share a process here; take the `world` of each, `host.mpi`")
    raise AttributeError(f"MPI has no {name} here")
