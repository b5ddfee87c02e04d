"""The recorder: a program on the MPI layer is written down, and its replay makes the same calls in the same cycles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lanikai.sim.experiments.measure.gm_hosts import gm_cluster
from lanikai.sim.host.mpi.data.buffers import IN_PLACE
from lanikai.sim.host.mpi.errors import RecordError
from lanikai.sim.host.mpi.record import RECORDED, Recorder
from lanikai.sim.host.mpi.replay import replay
from lanikai.sim.host.mpi.trace import read_trace, read_traces
from lanikai.sim.run import run
from support.sim.fake_transport import Ranks


async def program(world) -> None:
    """Computes, passes numbers along, and ends with collective calls."""
    numbers = np.arange(100.0)
    if world.rank:
        await world.Recv(numbers, source=world.rank - 1, tag=3)
    await world.process.transport.spend(7_000 * (world.rank + 1))
    if world.rank + 1 < world.size:
        await world.Send(numbers, dest=world.rank + 1, tag=3)
    await world.Bcast(bytearray(50), root=1)
    await world.Barrier()
    await world.Allreduce(IN_PLACE, numbers)
    await world.Allreduce(np.array([world.rank]), np.empty(1, int))


def recorded(folder: Path, main, ranks: int = 3) -> list[Path]:
    """Run `main` on recorders; the traces of all ranks."""
    paths = [folder / f"rank{rank}.txt" for rank in range(ranks)]

    async def run(world):
        recorder = Recorder(world, paths[world.rank])
        await main(recorder)
        recorder.finish()

    Ranks(ranks, seed=4).run(run)
    return paths


def test_a_recorded_program_is_what_was_called(tmp_path) -> None:
    traces = read_traces(recorded(tmp_path, program))
    assert [call.name for call in traces[1].calls[3:-1]] == [
        "MPI_Recv",
        "MPI_Send",
        "MPI_Bcast",
        "MPI_Barrier",
        "MPI_Allreduce",
        "MPI_Allreduce",
    ]
    receive, send, bcast, _, first, second = traces[1].calls[3:-1]
    assert (receive.length, receive.peer, receive.tag) == (800, 0, 3) and send.peer == 2
    assert (bcast.length, bcast.peer) == (50, 1) and (first.length, second.length) == (800, 8)
    assert send.start_us - receive.end_us == 14


def test_a_replay_makes_the_same_calls_in_the_same_cycles(tmp_path) -> None:
    first = read_traces(recorded(tmp_path, program))
    (tmp_path / "again").mkdir()

    async def again(world) -> None:
        await replay(world, first[world.rank], 1.0)

    second = read_traces(recorded(tmp_path / "again", again))
    assert [replace(one, source="") for one in second] == [replace(one, source="") for one in first]


def test_calls_of_a_communicator_that_does_not_wait(tmp_path) -> None:
    """As mpi4py's: its calls are no coroutines."""

    class World:
        made: list[tuple] = []

        def Get_rank(self) -> int:
            return 0

        def Get_size(self) -> int:
            return 2

        def Send(self, *arguments) -> None:
            self.made.append(arguments)

        def Isend(self) -> None:
            raise AssertionError

    times = iter(range(100))
    recorder = Recorder(World(), tmp_path / "r.txt", clock=lambda: next(times) * 1e-3)
    assert recorder.Send(b"abc", 1, 5) is None and World.made == [(b"abc", 1, 5)]
    assert recorder.Get_size() == 2
    with pytest.raises(RecordError, match=f"^Isend cannot be recorded: a trace has {', '.join(RECORDED)}$"):
        recorder.Isend(b"abc", 1)
    with pytest.raises(RecordError, match=r"^Recv of source -1, tag 2 cannot be recorded: name one source"):
        recorder.Recv(bytearray(2), tag=2)
    with pytest.raises(AttributeError):
        _ = recorder.Nothing
    assert not (tmp_path / "r.txt").exists()
    recorder.finish()
    (call,) = read_trace(tmp_path / "r.txt").calls[3:-1]
    assert (call.name, call.length, call.peer, call.tag) == ("MPI_Send", 3, 1, 5)
    assert call.end_us - call.start_us == 1000
    for late in (recorder.finish, recorder.Barrier):
        with pytest.raises(RecordError, match=r"the trace has been written|has been written: finish"):
            late()
    with pytest.raises(RecordError, match="cannot be written: there is no folder"):
        Recorder(World(), tmp_path / "none" / "r.txt")


def test_a_program_on_the_cluster_replays_in_the_same_cycles(tmp_path) -> None:
    cluster = gm_cluster()
    found = []
    for name, before in (("first", None), ("second", "first")):
        (tmp_path / name).mkdir()
        traces = sorted(map(str, (tmp_path / before).glob("*.txt"))) if before else []
        spec = {"folder": str(tmp_path / name), "traces": traces}
        entry, job = cluster.job("support.sim.record_points:recorded", spec)
        run(cluster.build(), entry, job, out_dir=tmp_path / name, seed=1)
        found.append(read_traces(sorted((tmp_path / name).glob("rank*.txt"))))
    first, second = (
        [[(c.name, c.start_us, c.end_us) for c in one.calls] for one in traces] for traces in found
    )
    assert first == second and len(first) == 4
