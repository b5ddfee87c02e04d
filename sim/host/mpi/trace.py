"""Traces of MPI programs as the profiler collprof 0.9 writes them: one text file a rank.

A line is a call; its fields stand between colons, times are microseconds since 1970, addresses are decimal:

    MPI_Init:-:ARGC:ARGV:END
    MPI_Comm_size:START:COMM:ADDRESS:END                        MPI_Comm_rank likewise
    MPI_Barrier:START:COMM:END
    MPI_Bcast:START:ADDRESS:COUNT:TYPE:ROOT:COMM:END
    MPI_Allreduce:START:ADDRESS:ADDRESS:COUNT:TYPE:OPERATION:COMM:END
    MPI_Send:START:ADDRESS:COUNT:TYPE:DESTINATION:TAG:COMM:END
    MPI_Recv:START:ADDRESS:COUNT:TYPE:SOURCE:TAG:COMM:ADDRESS:END
    MPI_Finalize:START:-

COMM is `number,rank,size`; TYPE is `number,bytes,extent` (the extent's upper half is not always set, and is not
used). Lines that begin with # (the first one does) and empty lines are skipped, and spaces around a line.

An excerpt of a sweep3d run on 2 x 2 ranks comes with the package (`example_traces`). It has the run's start, two of the
eight octants of its first iteration, and the two allreduces that end the iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...user_files import read_data_lines, read_text
from .envelope import MAX_LENGTH, MAX_TAG
from .errors import TraceError

__all__ = ["Call", "Trace", "cut", "example_traces", "read_trace", "read_traces"]

FIRST_LINE = "# collprof"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a rank.

    - `name`: its MPI name.
    - `start_us`, `end_us`: its times, the same for Init and Finalize, of which one is recorded.
    - `length`: bytes.
    - `peer`: the rank at the other end, or the root.
    - `tag`: its tag.
    """

    name: str
    start_us: float
    end_us: float
    length: int = 0
    peer: int = 0
    tag: int = 0


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The `calls` of rank `rank` of `size`, from the file `source`."""

    rank: int
    size: int
    calls: tuple[Call, ...]
    source: str


def example_traces() -> list[Path]:
    """The files of the excerpt of sweep3d, by rank."""
    return sorted((Path(__file__).parent / "traces").glob("sweep3d-2x2-rank-*.txt"))


def read_trace(path: Path) -> Trace:
    """The trace in one file. Raises TraceError: the file, the line, the fault there."""
    if not read_text(path, "trace", TraceError).lstrip().startswith(FIRST_LINE):
        raise TraceError(f"{path}:1: a trace begins with {FIRST_LINE!r}")
    calls: list[Call] = []
    place: tuple[int, int] | None = None
    for number, line in read_data_lines(path, "trace", TraceError):
        try:
            call, where = _parse(line)
            if calls and call.start_us < calls[-1].end_us:
                raise _Bad(f"it starts before the end of the call before, {calls[-1].end_us:.0f}")
            if where is not None and place is not None and where != place:
                raise _Bad(
                    f"it is of rank {where[0]} of {where[1]}, the file of rank {place[0]} of {place[1]}"
                )
            if where is not None and call.name in PEERS and not 0 <= call.peer < where[1]:
                raise _Bad(f"{PEERS[call.name]} = {call.peer}: ranks are 0 to {where[1] - 1}")
        except _Bad as bad:
            raise TraceError(f"{path}:{number}: {bad}") from None
        place = place or where
        calls.append(call)
    if place is None:
        raise TraceError(f"{path}: no call names its rank")
    return Trace(rank=place[0], size=place[1], calls=tuple(calls), source=str(path))


def read_traces(paths: Sequence[Path]) -> list[Trace]:
    """The traces of all ranks of a program, by rank.

    Raises TraceError for:

    - a bad line;
    - ranks that are missing or there twice;
    - messages that are sent and not received or the other way round, or longer than their receives;
    - collective calls that do not go together.
    """
    traces = sorted((read_trace(path) for path in paths), key=lambda trace: trace.rank)
    if not traces:
        raise TraceError("no trace: give the file of every rank")
    size = traces[0].size
    for number, trace in enumerate(traces):
        if trace.size != size:
            raise TraceError(f"{trace.source}: {trace.size} ranks, but {traces[0].source} has {size}")
        if number and trace.rank == traces[number - 1].rank:
            raise TraceError(f"{trace.source}: rank {trace.rank}, as {traces[number - 1].source}")
    ranks = {trace.rank for trace in traces}
    missing = next((rank for rank in range(size) if rank not in ranks), None)
    if missing is not None:
        raise TraceError(f"no trace of rank {missing} among {len(traces)} files of a program of {size} ranks")
    sent, received = _channels(traces, "MPI_Send"), _channels(traces, "MPI_Recv")
    for channel in sorted({*sent, *received}):
        counts = len(sent.get(channel, ())), len(received.get(channel, ()))
        if counts[0] != counts[1]:
            source, target, tag = channel
            raise TraceError(
                f"{traces[source].source}: rank {source} sends {counts[0]} messages with tag {tag} to rank "
                f"{target}, which receives {counts[1]}"
            )
    for channel, lengths in sent.items():
        for number, (length, room) in enumerate(zip(lengths, received[channel], strict=True), 1):
            if length > room:
                source, target, tag = channel
                raise TraceError(
                    f"{traces[source].source}: message {number} with tag {tag} from rank {source} to rank {target} has "
                    f"{length} bytes, its receive {room}"
                )
    collective = [
        [(call.name, call.length, call.peer) for call in trace.calls if call.name in COLLECTIVE]
        for trace in traces
    ]
    for trace, names in zip(traces, collective, strict=True):
        if names != collective[0]:
            raise TraceError(f"{trace.source}: its collective calls are not those of {traces[0].source}")
    return traces


def cut(traces: Sequence[Trace], messages: int) -> list[Trace]:
    """The traces with the first `messages` messages from each rank to each other, and all collective calls.

    The rest was possible in the order in which it was recorded, so it is now.
    """
    result = []
    for trace in traces:
        seen: Counter[tuple[str, int]] = Counter()
        kept = []
        for call in trace.calls:
            if call.name in ("MPI_Send", "MPI_Recv"):
                seen[call.name, call.peer] += 1
                if seen[call.name, call.peer] > messages:
                    continue
            kept.append(call)
        result.append(replace(trace, calls=tuple(kept)))
    return result


PEERS = {"MPI_Send": "destination", "MPI_Recv": "source", "MPI_Bcast": "root"}
"""Calls with a peer: its name there."""
COLLECTIVE = ("MPI_Barrier", "MPI_Bcast", "MPI_Allreduce")


def _channels(traces: Sequence[Trace], name: str) -> dict[tuple[int, int, int], list[int]]:
    """The lengths of the messages of each source, target and tag, in their order."""
    lengths: dict[tuple[int, int, int], list[int]] = {}
    for trace in traces:
        for call in trace.calls:
            if call.name == name:
                ends = (trace.rank, call.peer) if name == "MPI_Send" else (call.peer, trace.rank)
                lengths.setdefault((*ends, call.tag), []).append(call.length)
    return lengths


class _Bad(Exception):
    """The fault of a line."""


_FORMS = {
    "MPI_Init": ("-", "address", "address", "end"),
    "MPI_Comm_size": ("start", "comm", "address", "end"),
    "MPI_Comm_rank": ("start", "comm", "address", "end"),
    "MPI_Barrier": ("start", "comm", "end"),
    "MPI_Bcast": ("start", "address", "count", "type", "root", "comm", "end"),
    "MPI_Allreduce": ("start", "address", "address", "count", "type", "operation", "comm", "end"),
    "MPI_Send": ("start", "address", "count", "type", "destination", "tag", "comm", "end"),
    "MPI_Recv": ("start", "address", "count", "type", "source", "tag", "comm", "address", "end"),
    "MPI_Finalize": ("start", "-"),
}
"""The fields behind each call's name."""


def _parse(line: str) -> tuple[Call, tuple[int, int] | None]:
    """A line as a call, and the rank and size of its communicator if it names one. Raises _Bad."""
    name, *texts = line.split(":")
    if name not in _FORMS:
        raise _Bad(f"{name[:40]!r} is no call that a trace can hold: {', '.join(_FORMS)}")
    form = _FORMS[name]
    if len(texts) != len(form):
        raise _Bad(f"{name} has {len(texts)} fields: {len(form)} ({', '.join(form)})")
    fields: dict[str, str] = {}
    for what, text in zip(form, texts, strict=True):
        if what == "-" and text != "-":
            raise _Bad(f"{name}: {text[:40]!r} stands where - is")
        if what == "address":
            _whole(name, what, text)
        fields[what] = text
    times = [_time(name, what, fields[what]) for what in ("start", "end") if what in fields]
    start, end = times[0], times[-1]
    if end < start:
        raise _Bad(f"{name}: it ends at {end:.0f}, before it starts")
    where = None
    if "comm" in fields:
        _, rank, size = _triple(name, "comm", fields["comm"])
        if not 0 <= rank < size:
            raise _Bad(f"{name}: comm = {fields['comm']}: its rank is 0 to its size less 1")
        where = (rank, size)
    peer = next((_whole(name, what, fields[what]) for what in PEERS.values() if what in fields), 0)
    length = tag = 0
    if "count" in fields:
        length = _whole(name, "count", fields["count"]) * _triple(name, "type", fields["type"])[1]
        if length > MAX_LENGTH:
            raise _Bad(f"{name}: {length} bytes: at most {MAX_LENGTH}")
    if "tag" in fields and (tag := _whole(name, "tag", fields["tag"])) > MAX_TAG:
        raise _Bad(f"{name}: tag = {tag}: at most {MAX_TAG}")
    return Call(name=name, start_us=start, end_us=end, length=length, peer=peer, tag=tag), where


def _number(name: str, what: str, text: str, kind: Callable[[str], float]) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1e20:
        raise _Bad(f"{name}: {what} = {text[:40]!r}: a number of 0 or more")
    return value


def _whole(name: str, what: str, text: str) -> int:
    return int(_number(name, what, text, int))


def _time(name: str, what: str, text: str) -> float:
    return _number(name, what, text, float)


def _triple(name: str, what: str, text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3:
        raise _Bad(f"{name}: {what} = {text[:40]!r}: three numbers, separated by commas")
    first, second, third = (_whole(name, what, part) for part in parts)
    return first, second, third
