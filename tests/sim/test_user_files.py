"""Files that users give: marks that editors leave in them, and refused texts, with the file's name."""

from __future__ import annotations

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.host.mpi.errors import TraceError
from lanikai.sim.host.mpi.trace import example_traces, read_trace
from lanikai.sim.user_files import read_data_lines, read_json, read_text

MARK = b"\xef\xbb\xbf"


def test_a_byte_order_mark_comments_and_spaces_are_taken(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(MARK + "# größer\n  # indented\n 1 2  \r\n\n\t3\n".encode())
    assert list(read_data_lines(path, "data")) == [(3, "1 2"), (5, "3")]


def test_what_is_no_data(tmp_path):
    path = tmp_path / "data"
    path.write_text("1\n\u0662\n")
    with pytest.raises(UserError, match=r"data:2: '\u0662': data is in ASCII; other letters belong in"):
        list(read_data_lines(path, "data"))
    path.write_bytes(b"1\n\xff\n")
    with pytest.raises(UserError, match=r"^data '.*data' is no text in UTF-8: byte 2, in line 2, is wrong$"):
        read_text(path, "data")
    with pytest.raises(UserError, match=r"^data '.*none' cannot be read: No such file or directory$"):
        read_text(tmp_path / "none", "data")
    with pytest.raises(UserError, match=r"^data '.*a\\x00b' cannot be read: embedded null byte$"):
        read_text(tmp_path / "a\0b", "data")


@pytest.mark.parametrize("error", [UserError, ConfigError])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1, "b": {"a": 2, "a": 3}}', ":1: key 'a' is given twice in one object: give it once"),
        ("[" * 100_000, ": nested too deep to be read"),
        ('{"a": ', ": not JSON: Expecting value: line 1 column 7 (char 6)"),
    ],
)
def test_json_that_is_refused(tmp_path, text, fault, error):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(error) as caught:
        read_json(path, "network", error)
    assert str(caught.value) == (f"{path}{fault}" if fault[1].isdigit() else f"network {str(path)!r}{fault}")


def test_a_network_file_as_an_editor_on_another_system_leaves_it(tmp_path):
    path = tmp_path / "net.json"
    path.write_bytes(MARK + b'{"routers": 1, "nodes": [[0, 0], [0, 1]], "links": []}\r\n')
    assert named_network(str(path), RouterConfig()).routers == 1
    path.write_text('{"routers": 1, "routers": 2, "nodes": [[0, 0], [0, 1]], "links": []}')
    with pytest.raises(ConfigError, match=r"net.json:1: key 'routers' is given twice"):
        named_network(str(path), RouterConfig())


def test_a_trace_as_an_editor_on_another_system_leaves_it(tmp_path):
    lines = example_traces()[0].read_text().splitlines()
    path = tmp_path / "trace"
    path.write_bytes(
        MARK + "\r\n".join([lines[0], "  # große Rechnung", *(f"{line}  " for line in lines[1:])]).encode()
    )
    assert read_trace(path).calls == read_trace(example_traces()[0]).calls
    path.write_text("\n".join([lines[0], "MPI_Finalize:\u0661:-"]))
    with pytest.raises(TraceError, match=r":2: .*data is in ASCII"):
        read_trace(path)
