"""Packet traces: text, Parquet and Netrace; the parts that are played; and what is refused, with its line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from lanikai.sim.inputs.errors import InputError
from lanikai.sim.inputs.netrace import PACKET_BYTES
from lanikai.sim.inputs.packet_trace import COLUMNS
from lanikai.sim.inputs.traces import EXAMPLE, NETRACE_EXAMPLE, Excerpt, read_trace
from support.sim.decorated import decorated
from support.sim.netrace_files import netrace_bytes, write_netrace

LINK = LinkConfig(flit_bits=128)
ALL = Excerpt()
PACKETS = st.lists(
    st.tuples(
        st.integers(0, 5000), st.integers(0, 15), st.integers(0, 15), st.integers(1, 1023), st.integers(0, 3)
    ),
    min_size=1,
    max_size=20,
)


def columns(packets):
    """The packets as rows."""
    return list(
        zip(
            *(
                column.tolist()
                for column in (
                    packets.cycle,
                    packets.source,
                    packets.destination,
                    packets.flits,
                    packets.traffic_class,
                )
            ),
            strict=True,
        )
    )


@settings(max_examples=80, deadline=None)
@given(PACKETS, st.data())
def test_marks_of_editors_change_nothing_and_parquet_is_the_same(rows, data):
    text = "\n".join(" ".join(map(str, row[:4] if row[4] == 0 else row)) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "a.trace", Path(folder) / "a.parquet"
        path.write_bytes(data.draw(decorated(text)))
        found = columns(read_trace(path, LINK, ALL))
        assert found == sorted(rows, key=lambda row: row[0])
        polars.DataFrame(rows, schema=list(COLUMNS), orient="row").write_parquet(table)
        assert columns(read_trace(table, LINK, ALL)) == found


@settings(max_examples=40, deadline=None)
@given(PACKETS, st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 20))
def test_a_part_of_a_trace(rows, first, cycles, most):
    wanted = sorted((row for row in rows if row[0] >= first), key=lambda row: row[0])
    wanted = [(row[0] - first, *row[1:]) for row in wanted if not cycles or row[0] < first + cycles]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.trace"
        path.write_text("\n".join(" ".join(map(str, row)) for row in rows))
        part = Excerpt(first_cycle=first, cycles=cycles, most=most)
        if wanted:
            assert columns(read_trace(path, LINK, part)) == wanted[: most or None]
        else:
            with pytest.raises(InputError, match="has no packet in the part"):
                read_trace(path, LINK, part)


@pytest.mark.parametrize("name", ["a.tra", "a.tra.bz2"])
def test_netrace(tmp_path, name):
    """Types give lengths, dependants become what they wait for. A part knows what it has lost."""
    packets = [(0, 7, 1, 0, 1, [9, 8]), (5, 8, 2, 1, 0, [9]), (9, 9, 6, 2, 2, [])]
    path = write_netrace(tmp_path / name, netrace_bytes(packets, nodes=4))
    whole = read_trace(path, LINK, ALL)
    # A header of 128 bits, 8 bytes or 72 of them in flits of 16.
    assert columns(whole) == [(0, 0, 1, 2, 0), (5, 1, 0, 6, 0), (9, 2, 2, 6, 0)]
    assert whole.waits_for == ((), (0,), (0, 1)) and whole.unknown_dependencies == 0
    assert read_trace(path, LinkConfig(flit_bits=32), ALL).flits.tolist() == [6, 22, 22]
    part = read_trace(path, LINK, Excerpt(first_cycle=5))
    assert part.waits_for == ((), (0,)) and part.unknown_dependencies == 2
    assert part.cycle.tolist() == [0, 4]
    assert len(read_trace(path, LINK, Excerpt(cycles=6))) == len(read_trace(path, LINK, Excerpt(most=2))) == 2


def test_types_of_netrace_are_those_of_its_caches():
    assert {size for size in PACKET_BYTES.values()} == {8, 72} and len(PACKET_BYTES) == 15


def test_examples_that_come_along():
    assert read_trace(EXAMPLE, LINK, ALL).nodes == 4
    found = read_trace(NETRACE_EXAMPLE, LINK, ALL)
    assert (len(found), found.nodes, found.unknown_dependencies) == (3000, 64, 0)
    assert sum(map(len, found.waits_for)) > 1000


TEXTS = {
    "": "has no packet: a line a packet, cycle source destination flits [class]",
    "\n# 1 0 1 4\n": "has no packet: a line a packet, cycle source destination flits [class]",
    "0 0 1 4\n1 0 1": ":2: 3 fields in '1 0 1': 4 or 5: cycle source destination flits [class]",
    "0 0 1 4 0 0": ":1: 6 fields in '0 0 1 4 0 0': 4 or 5: cycle source destination flits [class]",
    "# x\n\n-1 0 1 4": ":3: cycle = '-1': a whole number, 0 to 4611686018427387903",
    "1.5 0 1 4": ":1: cycle = '1.5': a whole number, 0 to 4611686018427387903",
    "1e3 0 1 4": ":1: cycle = '1e3': a whole number, 0 to 4611686018427387903",
    "0 1024 1 4": ":1: source = '1024': a whole number, 0 to 1023",
    "0 0 b 4": ":1: destination = 'b': a whole number, 0 to 1023",
    "0 0 1 0": ":1: flits = '0': a whole number, 1 to 1023",
    "0 0 1 1024": ":1: flits = '1024': a whole number, 1 to 1023",
    "0 0 1 4 4": ":1: class = '4': a whole number, 0 to 3",
    "0 0 1 4 ü": ":1: '0 0 1 4 ü': data is in ASCII; other letters belong in a comment (#)",
    "0,0,1,4": ":1: 1 fields in '0,0,1,4': 4 or 5: cycle source destination flits [class]",
    "0 0 1 " + "4" * 50: f":1: flits = '{'4' * 39}…': a whole number, 1 to 1023",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_wrong_text_is_refused_in_a_line_that_names_its_line(text, tmp_path):
    path = tmp_path / "a.trace"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_trace(path, LINK, ALL)
    fault = TEXTS[text]
    assert str(caught.value) == (
        f"{path}{fault}" if fault[0] == ":" else f"packet trace {str(path)!r} {fault}"
    )


ROW = {name: [1] for name in COLUMNS}
TABLES = {
    "extra": (
        {**ROW, "size": [1]},
        ": unknown column 'size'; valid columns: cycle, source",
    ),
    "absent": (
        {"cycle": [1], "source": [1], "flits": [1]},
        ": no column 'destination': a packet trace has cycle",
    ),
    "type": (
        {name: ["1"] for name in COLUMNS},
        ": column 'cycle' has the type String: whole numbers, as Int64",
    ),
    "range": ({**ROW, "flits": [0]}, ": row 0: flits = 0: a whole number, 1 to 1023"),
    "null": (
        {**{name: [1, 2] for name in COLUMNS}, "class": [1, None]},
        ": row 1: class = None: a whole number, 0 to 3",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_wrong_table_is_refused_in_a_line_that_names_its_row(name, tmp_path):
    values, fault = TABLES[name]
    path = tmp_path / "a.parquet"
    polars.DataFrame(values).write_parquet(path)
    with pytest.raises(InputError) as caught:
        read_trace(path, LINK, ALL)
    assert str(caught.value).startswith(f"{path}{fault}")
    path.write_bytes(b"no table")
    with pytest.raises(InputError, match=r"a\.parquet': no Parquet file: "):
        read_trace(path, LINK, ALL)


GOOD = [(0, 1, 1, 0, 1, [2]), (3, 2, 2, 1, 0, [])]
BINARIES = {
    "short": (b"UTJH", "byte 0: 4 bytes: a header of 72"),
    "magic": (netrace_bytes(GOOD, nodes=2, magic=1), "byte 0: magic 0x1: 0x484a5455, a Netrace trace"),
    "version": (netrace_bytes(GOOD, nodes=2, version=1.5), "byte 4: version 1.5: 1.0"),
    "notes": (
        netrace_bytes(GOOD, nodes=2)[:80],
        "byte 72: the end of the file: 10 bytes of notes, 1 regions",
    ),
    "packets": (
        netrace_bytes(GOOD, nodes=2, count=3),
        "byte 152: the end after 2 packets: the 3 packets that the header says",
    ),
    "within": (netrace_bytes(GOOD, nodes=2)[:128], "byte 106: the end within packet 1: the 2 packets that"),
    "type": (netrace_bytes([(0, 1, 7, 0, 1, [])], nodes=2), "byte 122: packet type 7: one of 1, 2, 3, 4, 5"),
    "node": (netrace_bytes(GOOD, nodes=1), "byte 123: node 1: 0 to 0"),
    "cycle": (
        netrace_bytes(GOOD[::-1], nodes=2),
        "byte 127: cycle 0 after 3: packets in the order of their cycles",
    ),
    "twice": (
        netrace_bytes(GOOD[:1] * 2, nodes=2),
        "byte 139: packet 1 for the second time: numbers that differ",
    ),
}


@pytest.mark.parametrize("name", BINARIES)
def test_a_wrong_netrace_file_is_refused_in_a_line_that_names_the_byte(name, tmp_path):
    content, fault = BINARIES[name]
    path = write_netrace(tmp_path / "a.tra.bz2", content)
    with pytest.raises(InputError) as caught:
        read_trace(path, LINK, ALL)
    assert str(caught.value).startswith(f"{path}: {fault}")


def test_files_that_cannot_be_read(tmp_path):
    for name, text in (
        ("a.tra.bz2", "Invalid data stream"),
        ("none.tra", "No such file"),
        ("none.txt", "No such"),
    ):
        if name.startswith("a"):
            (tmp_path / name).write_bytes(b"abc" * 100)
        with pytest.raises(InputError, match=f"cannot be read: {text}"):
            read_trace(tmp_path / name, LINK, ALL)
    packed = write_netrace(tmp_path / "b.tra.bz2", netrace_bytes(GOOD, nodes=2))
    packed.write_bytes(packed.read_bytes()[:60])
    with pytest.raises(InputError, match="the compressed file ends too soon"):
        read_trace(packed, LINK, ALL)
    with pytest.raises(InputError, match=r"a name that ends with \.trace, \.txt, \.parquet, \.tra, \.bz2"):
        read_trace(tmp_path / "a.csv", LINK, ALL)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            ["network=router3"],
            "network = 'router3' has 3 nodes, and the trace names node 3: a network of 4 nodes at",
        ),
        (["vls=1"], "2 classes need as many VLs: there are 1 for data"),
        (["flit_bits=32"], "flit_bits = 32: the trace has packets of 2 flits: 4 at least, the header"),
        (["first_cycle=9999"], "has no packet in the part that is to be played: set first_cycle or cycles"),
        (["scale=0"], "scale = 0: must be above 0, at most 1000000"),
    ],
)
def test_a_trace_that_the_network_cannot_carry(settings, text):
    with pytest.raises(UserError) as caught:
        parse(find("network-trace"), settings)
    assert text in str(caught.value)
