"""Errors as a terminal shows them."""

from __future__ import annotations

import pytest
from lanikai.sim.cli.told import told

NAMES = [f"name-{number}" for number in range(20)]


def message(names, wrong="name_7", heading="valid"):
    return f"--set '{wrong}=1': unknown parameter {wrong!r} of one; {heading}: {', '.join(names)}"


@pytest.mark.parametrize("heading", ["valid", "valid keys", "valid firmware programs", "built are"])
def test_a_long_list_stands_below_with_the_nearest_first(heading):
    first, *rows = told(message(NAMES, heading=heading), columns=40)
    assert first == f"--set 'name_7=1': unknown parameter 'name_7' of one; {heading}:"
    assert rows[0].split()[0] == "name-7" and sorted(" ".join(rows).split()) == sorted(NAMES)
    assert all(len(row) <= 40 for row in rows)


@pytest.mark.parametrize("columns", [1, 9, 80, 1000])
def test_any_width(columns):
    rows = told(message(NAMES), columns=columns)[1:]
    assert sorted(" ".join(rows).split()) == sorted(NAMES)
    assert max(map(len, rows)) <= max(columns, 2 + max(map(len, NAMES)))


def test_a_short_list_stays_on_the_line():
    assert told(message(NAMES[:3]), columns=20) == [message(NAMES[:3])]


def test_a_name_may_have_a_list_of_its_own():
    names = ["preset (tiny, lanai4, lanai7)", *NAMES]
    assert "  preset (tiny, lanai4, lanai7)" in [row.rstrip() for row in told(message(names), columns=32)]


@pytest.mark.parametrize(
    "text", ["", "a fault", "a fault\nand its traceback", "ports = 1: must be 2 to 64; " * 9]
)
def test_other_messages_are_their_first_line(text):
    assert told(text, columns=80) == [text.partition("\n")[0]]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_has_lines_that_break_between_words(columns):
    text = "lanikai: share-senders: idt_over_T.0 = 2: must be a list of 1 to 64 settings, each a list of 1 to 16 IDTs"
    lines = told(text, columns=columns, wrapped=True)
    assert " ".join(line.strip() for line in lines) == text and max(map(len, lines)) <= columns
    assert all(line.startswith("  ") for line in lines[1:])
    first = told(message(NAMES), columns=columns, wrapped=True)
    assert max(map(len, first)) <= max(columns, 40)


def test_the_choices_of_a_value_are_listed_too():
    text = f"network-load: vl_arbiter = 'name_7': one of {', '.join(NAMES)}"
    first, *rows = told(text, columns=40)
    assert first == "network-load: vl_arbiter = 'name_7': one of:" and rows[0].split()[0] == "name-7"
