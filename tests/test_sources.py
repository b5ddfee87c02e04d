"""Every source that code and pages name is in `docs/sources.md`, with the section that is named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest
from support.references import ROOT, product_files

PAGE = "docs/sources.md"
KEY = re.compile(r"\b[a-z]+(?:-(?:thesis|paper))?-(?:19|20)\d\d\b")
PLACE = r"(?:chapter )?\d(?:\.\d+)*(?:-\d(?:\.\d+)*)?"
SECTIONS = re.compile(rf"({KEY.pattern}),? ({PLACE}(?:(?:,| and|, and) {PLACE})*)(?![\w-])")
CITATION = re.compile(
    r"\(([^()]*(?:OOPSLA|IEEE|ACM|Soft\.|Vigna|ARM IHI|revision)[^()]*(?:\([^()]*\)[^()]*)*)\)"
)
FILES = [
    name
    for name in product_files()
    if name.startswith(("hdl/", "firmware/", "sim/", "docs/", "README"))
    and name.endswith((".py", ".md", ".rdl", ".toml", ".cpp", ".h", ".sv"))
    and name != PAGE
]


def text_of(name: str) -> str:
    """A file's text in one line, strings and comments that go on over lines joined."""
    text = (ROOT / name).read_text()
    text = re.sub(r"\"\s*\n\s*f?\"", "", text)
    return " ".join(re.sub(r"\n\s*(?:#|//)", "\n", text).split())


TEXTS = {name: text_of(name) for name in FILES}


def rows(heading: str) -> Iterator[list[str]]:
    """Cells of the table below a heading of the page."""
    table = (ROOT / PAGE).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("|") and set(line) != set("|-") and cells[0] not in ("key", "named as"):
            yield cells


DOCUMENTS = {row[0] for row in rows("The five documents")}
TITLES = {(key, section): title for key, section, title in rows("Sections that are named")}
WORKS = [
    row[0]
    for heading in ("Other works", "Standards, manuals and interfaces", "Data")
    for row in rows(heading)
]


def sections(text: str) -> set[tuple[str, str]]:
    """Key and number of each section that a text names. For a range it is both ends."""
    return {
        (key, number.rstrip("."))
        for key, places in SECTIONS.findall(text)
        for number in re.findall(r"\d(?:\.\d+)*", places)
    }


def test_the_five_documents_are_there_in_full():
    assert len(DOCUMENTS) == 5
    for row in rows("The five documents"):
        assert all(row) and re.fullmatch(r"(19|20)\d\d", row[3]), row


def test_every_key_that_is_named_is_a_document():
    named = {(key, name) for name, text in TEXTS.items() for key in KEY.findall(text)}
    assert {key for key, _ in named} == DOCUMENTS, sorted(pair for pair in named if pair[0] not in DOCUMENTS)


def test_every_published_table_names_documents_and_places():
    with (ROOT / "sim" / "published.toml").open("rb") as file:
        tables = tomllib.load(file)
    for name, table in tables.items():
        for part in table["source"].split("; "):
            key, _, place = part.partition(" ")
            assert key in DOCUMENTS and re.search(r"\d", place), f"[{name}]: {part}"


def test_every_section_that_is_named_has_its_title():
    named = {pair: name for name, text in TEXTS.items() for pair in sections(text)}
    assert not [f"{named[pair]}: {pair}" for pair in named.keys() - TITLES.keys()]


@pytest.mark.parametrize(("key", "section"), TITLES)
def test_every_title_is_of_a_section_that_is_named(key, section):
    """With its key, or by its number alone in a file that names the key."""
    number = re.compile(rf"(?<![\d.]){re.escape(section)}(?!\.?\d)")
    assert any(key in text and number.search(text) for text in TEXTS.values())


@pytest.mark.parametrize("work", WORKS)
def test_every_other_work_is_named_somewhere(work):
    assert any(work.lower() in text.lower() for text in TEXTS.values())


def test_every_citation_is_of_a_work_on_the_page():
    for name, text in TEXTS.items():
        for citation in CITATION.findall(text):
            known = any(work.lower() in citation.lower() for work in [*WORKS, *DOCUMENTS])
            assert known, f"{name}: ({citation})"


def test_what_is_not_on_the_page_is_found():
    assert KEY.findall("as smith-2003 and jones-thesis-1999 4.1 say") == ["smith-2003", "jones-thesis-1999"]
    assert sections("(nagar-thesis-2001 4.1.2, 5.2.6 and chapter 6)") == {
        ("nagar-thesis-2001", "4.1.2"),
        ("nagar-thesis-2001", "5.2.6"),
        ("nagar-thesis-2001", "6"),
    }
    assert sections("yum-2006 7.4, figures 3, 8") == {("yum-2006", "7.4")}
    assert CITATION.findall("a sort (Batcher, Proc. IEEE, 1968)") == ["Batcher, Proc. IEEE, 1968"]
