"""The table of the architecture's page says for each question a file that exists, and a name that is in it."""

from __future__ import annotations

import re

import pytest
from support.imports import PACKAGES
from support.references import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(
    r"^\| (.+) \| (.+) \|$", PAGE.partition("## Where is ...\n")[2].partition("\n## ")[0], re.MULTILINE
)[2:]
MAP = PAGE.partition("```\n")[2].partition("```")[0]


def test_the_table_answers_what_strangers_ask():
    asked = " ".join(question for question, _ in ROWS)
    for words in ("arbiter of a link", "doorbell is refused", "step of firmware", "exit status", "build's key",
                  "plot", "IDT", "deadlock", "waves", "published"):  # fmt: skip
        assert words in asked
    assert len(ROWS) >= 20


@pytest.mark.parametrize(("question", "answer"), ROWS, ids=[question for question, _ in ROWS])
def test_an_answer_names_files_and_what_is_in_them(question, answer):
    places = re.findall(r"`([^`]*/[^`]*)`(?: \(`(\w+)`\))?", answer)
    assert places
    for path, name in places:
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), f"{name} is not in {path}"


def test_the_map_names_what_is_there_and_every_folder_of_a_package():
    for package in PACKAGES:
        block = re.search(rf"^{package}/.*\n((?: +.*\n)*)", MAP, re.MULTILINE).group(1)
        named = set(re.findall(r"^  (?=\S)(.+?)(?:   |$)", block, re.MULTILINE))
        words = {word for line in named for word in line.split()}
        assert not [word for word in words if not (ROOT / package / word).exists()]
        folders = {f"{path.parent.name}/" for path in (ROOT / package).glob("*/__init__.py")}
        assert folders <= words
