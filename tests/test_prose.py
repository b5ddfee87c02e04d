"""Docstrings and pages in plain English, as far as it can be counted: short sentences that have a subject."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.prose import MOST_WORDS, docstrings, findings, headless, long_sentences, sentences
from support.references import ROOT, product_files

FOLDERS = ("api/", "examples/", "constraints/", "docs/", "firmware/", "hdl/", "sim/", "tests/")
FILES = [
    name
    for name in product_files()
    if name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    or (name.startswith(FOLDERS) and name.endswith((".md", ".py")))
]


def test_sentences_are_short_and_docstrings_have_a_subject():
    wrong = [finding for name in FILES for finding in findings(ROOT / name)]
    assert not wrong, "\n".join(wrong)


def words(count: int) -> str:
    return " ".join(["word"] * count)


def test_a_sentence_of_too_many_words_is_found():
    text = f"Short one. A {words(MOST_WORDS)}. Another short one."
    assert long_sentences(text) == [f"{MOST_WORDS + 1} words: A {words(MOST_WORDS)}."]


@pytest.mark.parametrize(
    "text",
    [
        f"A {words(MOST_WORDS - 1)}.",
        f"A {words(20)}. A {words(20)}.",
        f"A {words(20)}! A {words(20)}?",
        f"(A {words(20)}.) `name` {words(20)}.",
        f"**A {words(20)}.** *A* {words(20)}.",
        f"A `{words(40)}` is one word.",
        f"A {words(20)} - = + -> & {words(9)}.",
        f"A [{words(20)}](address_of/a/page.md#and-{words(40)}).",
        f"A {words(20)}:\n\n- {words(20)};\n- {words(20)}.",
        f"1. {words(20)}\n   {words(9)}\n2. {words(20)}",
        f"A {words(20)}\n\nA {words(20)}",
        f"# {words(20)}\n{words(20)}",
        f"| {words(40)} |\n|---|",
        f"```\n{words(40)}\n```",
        f"<!-- {words(40)} -->",
        f">>> {words(40)}",
    ],
)
def test_a_text_of_short_sentences_is_not(text):
    assert not long_sentences(text)


def test_a_list_does_not_hide_a_long_item_nor_a_line_break_a_long_sentence():
    assert len(long_sentences(f"A list:\n\n- {words(20)}\n  {words(20)}\n- short")) == 1
    assert len(long_sentences(f"A {words(20)}\n{words(20)}.")) == 1


def test_a_full_stop_inside_of_a_number_or_name_ends_no_sentence():
    assert list(sentences("It is 0.5 of nic.py, see 4.2. It ends.")) == [
        "It is 0.5 of nic.py, see 4.2.",
        "It ends.",
    ]


@pytest.mark.parametrize(
    "text", ["What a block is.", "Whose turn it is.", "Of a link the name.", "\n    What."]
)
def test_a_docstring_that_begins_without_a_subject_is_found(text):
    assert headless(text)


@pytest.mark.parametrize(
    "text", ["Whatever goes.", "Often read.", "The owner, of what it has.", "", "what it is"]
)
def test_a_docstring_with_a_subject_is_not(text):
    assert not headless(text)


def test_docstrings_of_modules_classes_functions_and_names_are_read(tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        '"""Module."""\nlimit = 3\n"""Name."""\n\n\nclass A:\n    """Class."""\n\n'
        '    def f(self):\n        """Function."""\n        return "no docstring"\n'
    )
    assert sorted(docstrings(path)) == [(1, "Module."), (3, "Name."), (7, "Class."), (10, "Function.")]


def test_a_finding_says_file_line_and_reason(tmp_path):
    source, page = tmp_path / "one.py", tmp_path / "one.md"
    source.write_text(f'"""Of a module.\n\nA {words(MOST_WORDS)}."""\n')
    page.write_text(f"# What this is\n\nA {words(MOST_WORDS)}.\n")
    long = f"{MOST_WORDS + 1} words: A {words(MOST_WORDS)}."
    assert list(findings(source)) == [f"{source}:1: begins with Of", f"{source}:1: {long}"]
    assert list(findings(page)) == [f"{page}: {long}"]


def test_every_kind_of_file_is_read():
    assert {Path(name).suffix for name in FILES} == {".md", ".py"}
    assert {"README.md", "docs/gm.md", "docs/generate.py", "tests/test_prose.py"} < set(FILES)
