"""The glossary: it is in order, with a line for each term, which names files that exist and names that are in them."""

from __future__ import annotations

import re

import pytest
from support.references import ROOT

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| term")
]
MUST = {
    "vl",
    "idt",
    "ndt",
    "rtc",
    "t",
    "tick",
    "owner",
    "channel",
    "lane",
    "level",
    "rank",
    "region",
    "front",
    "composed",
}
MUST |= {"doorbell", "flit", "credit", "phit", "work queue", "completion queue"}
MUST |= {"arbiter", "vl arbiter", "allocator", "pick", "offer", "overdue", "parked", "charged", "look-ahead"}
MUST |= {"probe", "release", "management port", "pacing", "tailgated"}


def test_the_terms_are_in_order_and_none_is_missing():
    terms = [row[0].lower() for row in ROWS]
    assert terms == sorted(terms) and len(set(terms)) == len(terms) >= 40
    assert set(terms) >= MUST


@pytest.mark.parametrize(("term", "meaning", "where"), ROWS, ids=[row[0] for row in ROWS])
def test_a_term_is_where_the_glossary_says(term, meaning, where):
    assert meaning and len(meaning.split()) <= 30
    places = re.findall(r"`([^`]*/[^`]*)`(?: \(`(\w+)`\))?", where)
    assert places and where.count("`") == sum(2 if not name else 4 for _, name in places)
    for path, name in places:
        text = (ROOT / path).read_text()
        assert re.search(rf"\b{name}\b", text), f"{name} is not in {path}"
