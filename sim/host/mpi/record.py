"""A recorder of MPI calls, as a profiling layer has it: a communicator that writes its calls into a trace.

It wraps a communicator of this package, or one of mpi4py, and is used in its place. The file has the form that
`trace.py` reads, so that `mpi-replay` plays it:

    world = Recorder(world, Path("rank0.txt"))
    await world.Send(buffer, dest=1)  # of mpi4py without await
    world.finish()

Calls that the form has (`RECORDED`) are written down. Calls that send nothing are passed on. Any other call is refused
before it is made: a trace without it would be another program's.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data.buffers import IN_PLACE, data_of
from .errors import RecordError
from .trace import FIRST_LINE

__all__ = ["RECORDED", "Recorder"]

RECORDED = ("Barrier", "Bcast", "Allreduce", "Send", "Recv")
"""Calls that are written down."""
PASSED = frozenset(
    [
        "rank",
        "size",
        "name",
        "group",
        "process",
        "Get_rank",
        "Get_size",
        "Get_name",
        "Set_name",
        "Get_group",
        "Wtime",
        "Wtick",
        "Abort",
        "Compare",
        "Create_keyval",
        "Get_attr",
        "Set_attr",
        "Delete_attr",
    ]
)
"""Calls and attributes that send no message of the program's."""


class Recorder:
    """The communicator `comm`, whose calls are written to `path` when the program is over (`finish`).

    `clock`: seconds at the moment; None: the communicator's `Wtime`, or the machine's clock if it has none. Times are
    written in nanoseconds' steps. Raises RecordError for a file that cannot be written.
    """

    def __init__(self, comm: Any, path: Path, *, clock: Callable[[], float] | None = None) -> None:
        self._comm, self._path = comm, path
        self._clock: Callable[[], float] = clock or getattr(comm, "Wtime", None) or time.time
        self._last = 0
        self._place = f"0,{comm.Get_rank()},{comm.Get_size()}"
        self._ended = False
        if not path.parent.is_dir():
            raise RecordError(
                f"trace {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}"
            )
        now = self._now()
        self._lines = [
            f"{FIRST_LINE} 0.9: written by lanikai's recorder",
            f"MPI_Init:-:0:0:{now}",
            f"MPI_Comm_size:{now}:{self._place}:0:{now}",
            f"MPI_Comm_rank:{now}:{self._place}:0:{now}",
        ]

    def __getattr__(self, name: str) -> Any:
        """A call or attribute of the communicator. Raises RecordError for a call that cannot be recorded."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in PASSED:
            return getattr(self._comm, name)
        if callable(getattr(self._comm, name)):
            raise RecordError(f"{name} cannot be recorded: a trace has {', '.join(RECORDED)}")
        return getattr(self._comm, name)

    def Send(self, buf: Any, dest: int, tag: int = 0) -> Any:
        """As the communicator's. A coroutine's result is one too."""
        fields = f"{self._buffer(buf, 'Send')}:{dest}:{tag}:{self._place}"
        return self._call("Send", fields, buf, dest, tag)

    def Recv(self, buf: Any, source: int = -1, tag: int = -1, status: Any = None) -> Any:
        """As the communicator's, of one source and tag: the form has no wildcards. Raises RecordError."""
        if source < 0 or tag < 0:
            raise RecordError(
                f"Recv of source {source}, tag {tag} cannot be recorded: name one source and one tag"
            )
        fields = f"{self._buffer(buf, 'Recv')}:{source}:{tag}:{self._place}:0"
        return self._call("Recv", fields, buf, source, tag, status)

    def Bcast(self, buf: Any, root: int = 0) -> Any:
        """As the communicator's."""
        return self._call("Bcast", f"{self._buffer(buf, 'Bcast')}:{root}:{self._place}", buf, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, *op: Any, **named: Any) -> Any:
        """As the communicator's."""
        text = self._buffer(recvbuf, "Allreduce").partition(":")[2]
        return self._call("Allreduce", f"0:0:{text}:0:{self._place}", sendbuf, recvbuf, *op, **named)

    def Barrier(self) -> Any:
        """As the communicator's."""
        return self._call("Barrier", self._place)

    def finish(self) -> None:
        """Write the trace. It is called once, after the last call. Raises RecordError, OSError."""
        if self._ended:
            raise RecordError(f"trace {str(self._path)!r} has been written: finish is called once")
        self._ended = True
        partial = self._path.with_name(f"{self._path.name}.part")
        partial.write_text("\n".join([*self._lines, f"MPI_Finalize:{self._now()}:-", ""]))
        os.replace(partial, self._path)

    def _call(self, name: str, fields: str, *arguments: Any, **named: Any) -> Any:
        """Make a call and write it down; the coroutine that does so, if the communicator's calls are coroutines."""
        if self._ended:
            raise RecordError(f"{name} after finish cannot be recorded: the trace has been written")
        start = self._now()
        made = getattr(self._comm, name)(*arguments, **named)
        if inspect.isawaitable(made):

            async def awaited() -> Any:
                begin = self._now()
                value = await made
                self._lines.append(f"MPI_{name}:{begin}:{fields}:{self._now(end=True)}")
                return value

            return awaited()
        self._lines.append(f"MPI_{name}:{start}:{fields}:{self._now(end=True)}")
        return made

    def _buffer(self, buf: Any, call: str) -> str:
        """The fields ADDRESS:COUNT:TYPE of a buffer."""
        if buf is IN_PLACE:
            return "0:0:0,1,1"
        data = data_of(buf, f"{call} on the recorder", writable=False)
        size = data.dtype.itemsize
        return f"0:{data.count}:0,{size},{size}"

    def _now(self, *, end: bool = False) -> str:
        """The moment in microseconds, to a nanosecond: a call's start is rounded down, its `end` up. So the computing
        between two calls is never too long, and a replay of a simulated program takes its very cycles."""
        nanoseconds = self._clock() * 1e9
        # Where no time has passed, a start that is rounded down would lie before the end of the call before.
        self._last = math.ceil(nanoseconds) if end else max(self._last, math.floor(nanoseconds))
        return f"{self._last / 1000:.3f}"
