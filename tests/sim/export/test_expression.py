"""Expressions of Verilog: read, joined, written with no change of a width."""

from __future__ import annotations

import pytest
from lanikai.sim.export.expression import parse, put, width, write

WIDTHS = {"a": 4, "b": 4, "c": 5, "bit": 1, "t": 4}


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a[3]",
        "a[2:1]",
        "4'hf",
        "{a, bit}",
        "{4{bit}}",
        "~a",
        "|a",
        "a & b",
        "a + 1'h1",
        "bit ? a : b",
        "a == b",
    ],
)
def test_what_yosys_writes_is_read_and_written_again(text):
    found = parse(text)
    assert found is not None and write(found, WIDTHS) == text


@pytest.mark.parametrize("text", ["$signed(a)", "rows[a]", "a / b", "4'sh3", "a b", "", "(a"])
def test_what_is_not_plain_is_not_read(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("a & c", 5),
        ("|c", 1),
        ("a == b", 1),
        ("{a, c, bit}", 10),
        ("{3{a}}", 12),
        ("bit ? a : c", 5),
        ("c[3:1]", 3),
    ],
)
def test_the_width_of_an_expression_by_itself(text, bits):
    assert width(parse(text), WIDTHS) == bits


@pytest.mark.parametrize(
    ("user", "value", "surroundings", "text"),
    [
        ("t & b", "~a", 4, "(~a) & b"),
        # The inverse of four bits would have a fifth one here: it is kept to four.
        ("t + 1'h1", "~a", 5, "{~a} + 1'h1"),
        ("t & c", "a + b", 5, "{a + b} & c"),
        ("t", "~a", 5, "{~a}"),
        ("t == c", "a - b", 1, "{a - b} == c"),
        ("t == a", "a - b", 1, "(a - b) == a"),
        ("|t", "a ^ b", 8, "|(a ^ b)"),
        ("{t, bit}", "a + b", 9, "{a + b, bit}"),
        ("t ? a : b", "a == b", 4, "(a == b) ? a : b"),
        ("t", "a[2:0]", 5, "a[2:0]"),
    ],
)
def test_a_value_in_the_place_of_a_wire_keeps_its_width(user, value, surroundings, text):
    widths = {**WIDTHS, "t": width(parse(value), WIDTHS)}
    assert write(put(parse(user), "t", parse(value)), widths, surroundings) == text


def test_a_part_of_a_wire_is_not_replaced():
    with pytest.raises(ValueError):
        put(parse("t[1] & a"), "t", parse("~a"))
