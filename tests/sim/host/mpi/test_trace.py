"""Trace files: their content, and the fault of a bad line."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from lanikai.sim.host.mpi.errors import TraceError
from lanikai.sim.host.mpi.replay import LONGEST_COMPUTING_US, replay
from lanikai.sim.host.mpi.trace import Call, cut, example_traces, read_trace, read_traces
from support.sim.decorated import MARK, decorated
from support.sim.fake_transport import Ranks

GOOD = """# collprof 0.9 output file
# Init clockdiff: 0.000000

MPI_Init:-:140737488343500:140737488344604:1000.000000
MPI_Comm_size:1010.000000:0,1,2:140737488343496:1020.000000
MPI_Comm_rank:1020.000000:0,1,2:6741352:1030.000000
MPI_Barrier:1040.000000:0,1,2:1050.000000
MPI_Bcast:1060.000000:6610272:3:2,4,4:0:0,1,2:1070.000000
MPI_Recv:1080.000000:11:4500:11,8,46909632806920:0:3000:0,1,2:140737488340112:2000.500000
MPI_Send:2100.000000:12:5:11,8,8:0:7:0,1,2:2150.000000
MPI_Allreduce:2200.000000:13:14:2:11,8,8:3:0,1,2:2300.000000
MPI_Finalize:2400.000000:-
"""


def write(folder: Path, text: str, name: str = "rank.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_trace_is_read(tmp_path) -> None:
    trace = read_trace(write(tmp_path, GOOD))
    assert (trace.rank, trace.size, len(trace.calls)) == (1, 2, 9)
    assert trace.calls[3:] == (
        Call(name="MPI_Barrier", start_us=1040, end_us=1050),
        Call(name="MPI_Bcast", start_us=1060, end_us=1070, length=12),
        Call(name="MPI_Recv", start_us=1080, end_us=2000.5, length=36000, peer=0, tag=3000),
        Call(name="MPI_Send", start_us=2100, end_us=2150, length=40, peer=0, tag=7),
        Call(name="MPI_Allreduce", start_us=2200, end_us=2300, length=16),
        Call(name="MPI_Finalize", start_us=2400, end_us=2400),
    )


BARRIER = "MPI_Barrier:1040.000000:0,1,2:1050.000000"
SEND = "MPI_Send:2100.000000:12:5:11,8,8:0:7:0,1,2:2150.000000"
BAD = [
    (
        BARRIER,
        "MPI_Barier:1:0,1,2:2",
        "'MPI_Barier' is no call that a trace can hold: MPI_Init, MPI_Comm_size, ",
    ),
    (BARRIER, "nonsense", "'nonsense' is no call that a trace can hold: MPI_Init, "),
    (BARRIER, "MPI_Barrier:1040.0:0,1,2", "MPI_Barrier has 2 fields: 3 (start, comm, end)"),
    (BARRIER, BARRIER + ":", "MPI_Barrier has 4 fields: 3 (start, comm, end)"),
    (BARRIER, "MPI_Barrier:soon:0,1,2:1050", "MPI_Barrier: start = 'soon': a number of 0 or more"),
    (BARRIER, "MPI_Barrier:nan:0,1,2:1050", "MPI_Barrier: start = 'nan': a number of 0 or more"),
    (BARRIER, "MPI_Barrier:1040:0,1,2:inf", "MPI_Barrier: end = 'inf': a number of 0 or more"),
    (BARRIER, "MPI_Barrier:1050:0,1,2:1040", "MPI_Barrier: it ends at 1040, before it starts"),
    (BARRIER, "MPI_Barrier:1025:0,1,2:1040", "it starts before the end of the call before, 1030"),
    (BARRIER, "MPI_Barrier:1040:0,1:1050", "MPI_Barrier: comm = '0,1': three numbers, separated by commas"),
    (BARRIER, "MPI_Barrier:1040:0,2,2:1050", "MPI_Barrier: comm = 0,2,2: its rank is 0 to its size less 1"),
    (BARRIER, "MPI_Barrier:1040:0,0,2:1050", "it is of rank 0 of 2, the file of rank 1 of 2"),
    (SEND, SEND.replace(":5:", ":-5:"), "MPI_Send: count = '-5': a number of 0 or more"),
    (SEND, SEND.replace(":5:", ":0.5:"), "MPI_Send: count = '0.5': a number of 0 or more"),
    (SEND, SEND.replace(":5:", ":999999999:"), "MPI_Send: 7999999992 bytes: at most 4294967295"),
    (SEND, SEND.replace("11,8,8", "11,x,8"), "MPI_Send: type = 'x': a number of 0 or more"),
    (SEND, SEND.replace(":0:7:", ":2:7:"), "destination = 2: ranks are 0 to 1"),
    (SEND, SEND.replace(":0:7:", ":0:-7:"), "MPI_Send: tag = '-7': a number of 0 or more"),
    (SEND, SEND.replace(":0:7:", ":0:2147483648:"), "MPI_Send: tag = 2147483648: at most 2147483647"),
    (SEND, SEND.replace(":12:", "::"), "MPI_Send: address = '': a number of 0 or more"),
    ("MPI_Finalize:2400.000000:-", "MPI_Finalize:2400:x", "MPI_Finalize: 'x' stands where - is"),
]


@pytest.mark.parametrize(("good", "bad", "message"), BAD)
def test_a_bad_line_is_named_and_nothing_is_built(good, bad, message, tmp_path) -> None:
    line = GOOD.splitlines().index(good) + 1
    path = write(tmp_path, GOOD.replace(good, bad))
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}:{line}: {message}") and "\n" not in str(caught.value)
    # The same, as the command line finds it: with the parameters, before anything is built.
    with pytest.raises(UserError) as caught:
        parse(find("mpi-replay"), [f'traces=["{path}"]'])
    assert str(caught.value).startswith(f"{path}:{line}: {message}")


def test_files_that_are_no_traces(tmp_path) -> None:
    for text in ("", "MPI_Init\n"):
        path = write(tmp_path, text)
        with pytest.raises(TraceError) as caught:
            read_trace(path)
        assert str(caught.value) == f"{path}:1: a trace begins with '# collprof'"
    path = write(tmp_path, "# collprof\n\n")
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value) == f"{path}: no call names its rank"
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match=r"is no text in UTF-8: byte 0, in line 1, is wrong$"):
        read_trace(tmp_path / "binary")
    with pytest.raises(TraceError, match=r"cannot be read: No such file or directory$"):
        read_trace(tmp_path / "missing")
    with pytest.raises(TraceError, match=r"^no trace"):
        read_traces([])


def test_traces_that_do_not_go_together(tmp_path) -> None:
    def copies(changes: dict[int, tuple[str, str]]) -> list[Path]:
        paths = [Path(shutil.copy(path, tmp_path)) for path in example_traces()]
        for rank, (old, new) in changes.items():
            text = paths[rank].read_text()
            assert old in text
            paths[rank].write_text(text.replace(old, new, 1))
        return paths

    assert [trace.rank for trace in read_traces(reversed(copies({})))] == [0, 1, 2, 3]
    with pytest.raises(TraceError, match=r"^no trace of rank 2 among 3 files of a program of 4 ranks$"):
        read_traces([path for number, path in enumerate(copies({})) if number != 2])
    paths = copies({})
    with pytest.raises(TraceError, match=r"rank-1.txt: rank 1, as .*rank-1.txt$"):
        read_traces([paths[0], paths[1], paths[1], paths[3]])
    with pytest.raises(TraceError) as caught:
        read_traces(copies({3: (":2:3000:0,3,4", ":2:3001:0,3,4")}))
    assert str(caught.value) == (
        f"{tmp_path}/sweep3d-2x2-rank-3.txt: rank 3 sends 14 messages with tag 3000 to rank 2, which receives 15"
    )
    with pytest.raises(TraceError, match=r"rank-2.txt: its collective calls are not those of .*rank-0.txt$"):
        text = example_traces()[2].read_text()
        barrier = next(line for line in text.splitlines() if line.startswith("MPI_Barrier"))
        read_traces(copies({2: (barrier + "\n", "")}))
    with pytest.raises(TraceError) as caught:
        read_traces(copies({2: (":4500:11,8,8:3:", ":0:11,8,8:3:")}))
    assert str(caught.value) == (
        f"{tmp_path}/sweep3d-2x2-rank-3.txt: message 1 with tag 3000 from rank 3 to rank 2 has 36000 bytes, its "
        "receive 0"
    )
    # A size that no set of ranks should be made of: rank 1 is missing, at once.
    with pytest.raises(
        TraceError, match=r"^no trace of rank 0 among 1 files of a program of 99999999999 ranks$"
    ):
        read_traces([write(tmp_path, GOOD.replace("0,1,2:", "0,1,99999999999:"))])
    two = write(tmp_path, GOOD)
    with pytest.raises(TraceError, match=r"2 ranks, but .*rank-0.txt has 4$"):
        read_traces([example_traces()[0], two])


def test_the_excerpt_is_whole_and_can_be_cut() -> None:
    traces = read_traces(example_traces())
    sent = [sum(call.name == "MPI_Send" for call in trace.calls) for trace in traces]
    assert [trace.rank for trace in traces] == [0, 1, 2, 3] and sum(sent) == 240
    assert {call.length for trace in traces for call in trace.calls if call.name == "MPI_Send"} == {36000}
    for messages in (1, 3, 30):
        short = cut(traces, messages)
        for trace in short:
            for name in ("MPI_Send", "MPI_Recv"):
                peers = [call.peer for call in trace.calls if call.name == name]
                assert peers and max(peers.count(peer) for peer in peers) == messages
            assert sum(call.name == "MPI_Allreduce" for call in trace.calls) == 2


def test_a_replay_sends_what_was_recorded_and_computes_between() -> None:
    traces = cut(read_traces(example_traces()), 2)
    plain = Ranks(4)

    async def main(world):
        return await replay(world, traces[world.rank], 0.01)

    played = plain.run(main)
    assert sum(one.messages for one in played) == sum(
        call.name == "MPI_Send" for trace in traces for call in trace.calls
    )
    for one, trace in zip(played, traces, strict=True):
        gaps = [
            min(later.start_us - earlier.end_us, LONGEST_COMPUTING_US)
            for earlier, later in zip(trace.calls, trace.calls[1:], strict=False)
        ]
        # The plain transport's cycle is a microsecond of the host.
        assert one.cycles - one.call_cycles == pytest.approx(sum(gaps) * 0.01, abs=len(gaps))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_marks_of_editors_change_nothing(data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain, other = Path(folder) / "a.txt", Path(folder) / "b.txt"
        plain.write_text(GOOD)
        first, _, rest = GOOD.partition("\n")
        text = data.draw(decorated(rest))
        other.write_bytes(MARK * text.startswith(MARK) + f"{first}\r\n".encode() + text.removeprefix(MARK))
        assert read_trace(other).calls == read_trace(plain).calls
