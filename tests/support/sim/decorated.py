"""Text files with the marks that editors on other systems leave in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["MARK", "decorated"]

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""


@st.composite
def decorated(draw: Any, text: str, *, comment: str | None = "#", blank: bool = True) -> bytes:
    """The bytes of `text`: with or without a byte order mark, ends of lines of either kind, spaces around lines, blank
    lines, and comments that hold any letter. None of it changes the data. `comment`: how one begins; None: there are
    none."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    letters = st.text(
        st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\x85"), max_size=12
    )
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        if blank and number and draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "  ", "\t"])))
        if comment and draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "  "])) + comment + draw(letters))
        tail = draw(st.sampled_from(["", " ", "\t ", "   "]))
        if comment and draw(st.booleans()):
            tail = f" {comment} {draw(letters)}"
        lines.append(line + tail)
    body = end.join(lines) + draw(st.sampled_from(["", end]))
    return (MARK if draw(st.booleans()) else b"") + body.encode()
