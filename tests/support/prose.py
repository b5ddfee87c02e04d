"""Counts those rules of plain English that can be counted: words of a sentence, and how a docstring begins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MOST_WORDS", "docstrings", "findings", "headless", "long_sentences", "sentences"]

MOST_WORDS = 30
"""Words of the longest sentence that is allowed."""
_HEADLESS = re.compile(r"(What|Whose|Of)\b")
_FENCE = re.compile(r"```.*?```", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s")
_END = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=\**[A-Z(`\"'])")
_WORD = re.compile(r"[A-Za-z0-9]")


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text, each item of a list one; no tables, headings or code."""
    text = _COMMENT.sub("", _FENCE.sub("", text))
    held: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        ends = not stripped or stripped.startswith(("#", "|", ">>>"))
        if ends or _ITEM.match(line):
            if held:
                yield " ".join(held)
            held = []
        if not ends:
            held.append(stripped)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, parted at full stops. An item of a list is a paragraph, a name in backquotes a word."""
    for paragraph in _paragraphs(text):
        plain = _LINK.sub(r"\1", _CODE.sub("CODE", paragraph))
        yield from (part.strip() for part in _END.split(plain) if part and part.strip())


def long_sentences(text: str) -> list[str]:
    """The sentences of more than `MOST_WORDS` words."""
    found = []
    for sentence in sentences(text):
        words = [word for word in sentence.split() if _WORD.search(word)]
        if len(words) > MOST_WORDS:
            found.append(f"{len(words)} words: {sentence}")
    return found


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring of a Python file, those below names (a string after an assignment) too."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value


def headless(text: str) -> bool:
    """Whether a docstring begins with What, Whose or Of, and so without a subject."""
    return bool(_HEADLESS.match(text.strip()))


def findings(path: Path) -> Iterator[str]:
    """A line for every sentence that is too long and every docstring without a subject, of a source file or a page."""
    if path.suffix == ".md":
        yield from (f"{path}: {sentence}" for sentence in long_sentences(path.read_text()))
        return
    for line, text in docstrings(path):
        if headless(text):
            yield f"{path}:{line}: begins with {text.split()[0]}"
        yield from (f"{path}:{line}: {sentence}" for sentence in long_sentences(text))


if __name__ == "__main__":
    import sys

    for place in map(Path, sys.argv[1:]):
        files = [place] if place.is_file() else sorted((*place.rglob("*.py"), *place.rglob("*.md")))
        for found in (finding for file in files for finding in findings(file)):
            print(found)
