"""GOAL schedules: what is read, marks of editors, and what is refused, with its line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.inputs.errors import InputError
from lanikai.sim.inputs.goal import GOAL_EXAMPLE, read_goal
from support.sim.decorated import decorated

GOOD = """num_ranks 2
rank 0 {
  a: calc 100
  b: send 10b to 1 tag 3
  recv 4b from 1
  b requires a
  c: calc 5 cpu 0
  c irequires b
}
rank 1 { recv 10b from 0 tag 3 nic 0
send 4b to 0 }
"""


def form(schedule):
    """A schedule without the lines in which its operations stand."""
    return [[{**vars(one), "line": 0} for one in rank] for rank in schedule.ranks]


def test_a_schedule_is_read(tmp_path):
    path = tmp_path / "a.goal"
    path.write_text(GOOD)
    first, second = read_goal(path).ranks
    assert [(one.kind, one.amount, one.peer, one.tag, one.line) for one in first] == [
        ("calc", 100, -1, 0, 3),
        ("send", 10, 1, 3, 4),
        ("recv", 4, 1, 0, 5),
        ("calc", 5, -1, 0, 7),
    ]
    assert first[1].requires == [0] and first[3].irequires == [1] and not first[3].requires
    assert [one.kind for one in second] == ["recv", "send"]
    assert read_goal(GOAL_EXAMPLE).messages == 12


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["#", "//"]))
def test_marks_of_editors_change_nothing(data, comment):
    with tempfile.TemporaryDirectory() as folder:
        plain, other = Path(folder) / "a.goal", Path(folder) / "b.goal"
        plain.write_text(GOOD)
        text = data.draw(decorated(GOOD, comment=comment)).replace(b"100", b"/* \xc3\xbc\n*/ 100")
        other.write_bytes(text)
        assert form(read_goal(other)) == form(read_goal(plain))


ONE = "num_ranks 2\nrank 1 { }\nrank 0 {\n"
WRONG = {
    "": ":1: the end of the file: `num_ranks`",
    "ranks 2": ":1: 'ranks': `num_ranks`",
    "num_ranks 0": ":1: '0': ranks: a whole number, 1 to 16",
    "num_ranks 17": ":1: '17': ranks: a whole number, 1 to 16",
    "num_ranks 2\nrank 2 {}": ":2: '2': rank: a whole number, 0 to 1",
    "num_ranks 2\nrank 0 {}": ": no block of rank 1: `num_ranks 2` needs ranks 0 to 1",
    "num_ranks 1\nrank 0 {}\nrank 0 {}": ":3: rank 0 for the second time: line 2 has it",
    "num_ranks 1\nrank 0 {": ":2: the end of the file: an operation, or }",
    ONE + "calc 1.5\n}": ":4: '1.5': nanoseconds: a whole number, 0 to 1000000000000",
    ONE + "calc -1\n}": ":4: '-1': nanoseconds: a whole number, 0 to 1000000000000",
    ONE + "send 10 to 1\n}": ":4: '10': a length in bytes, as 4096b, from 1b to 16777216b",
    ONE + "send 0b to 1\n}": ":4: '0b': a length in bytes, as 4096b, from 1b to 16777216b",
    ONE + "send 1b from 1\n}": ":4: 'from': `to`",
    ONE + "send 1b to 0\n}": ":4: a message from rank 0 to itself: another rank",
    ONE + "send 1b to 2\n}": ":4: '2': rank: a whole number, 0 to 1",
    ONE + "recv 1b from 1 tag x\n}": ":4: 'x': tag: a whole number, 0 to 32767",
    ONE + "a: calc 1\na: calc 2\n}": ":5: label 'a' for the second time: line 4 has it",
    ONE + "a: wait 1\n}": ":4: 'wait': send, recv or calc",
    ONE + "a wait b\n}": ":4: 'a wait': send, recv, calc, `LABEL:` or `LABEL requires LABEL`",
    ONE + "a: calc 1\na requires b\n}": ":5: label 'b': a label of an operation of rank 0",
    ONE + "a: calc 1\nb: calc 1\na requires b\nb irequires a\n}": ":4: operations that wait for each",
    ONE + "calc 1 cpu 1\n}": ":4: '1': 0: a rank has one cpu here",
    ONE
    + "send 1b to 1\n}": ":4: 1 more of 1b sent from rank 0 to rank 1 with tag 0 than received: as many of each",
    ONE
    + "recv 1b from 1\n}": ":4: 1 more of 1b received from rank 1 to rank 0 with tag 0 than sent: as many of each",
    ONE + "calc 1;\n}": ":4: ';': words of letters and digits, `:`, `{` and `}`",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_schedule_is_refused_in_a_line_that_names_its_line(text, tmp_path):
    path = tmp_path / "a.goal"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_goal(path)
    assert str(caught.value).startswith(f"{path}{WRONG[text]}") and "\n" not in str(caught.value)
