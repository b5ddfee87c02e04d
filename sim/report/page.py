"""The parts of a page (text, tables, charts, a command, a picture), and their HTML.

A part is plain data; the templates of `templates/` have the markup. Jinja2 escapes every value. The page has one
policy for its browser: no address is asked for anything, and no script runs but the two that the page is made with.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import MissingTool

__all__ = [
    "Cell",
    "Chart",
    "Column",
    "Command",
    "Explorer",
    "Fold",
    "Note",
    "Page",
    "Part",
    "Picture",
    "Section",
    "Table",
    "plain",
    "render",
]

TEMPLATES = Path(__file__).parent / "templates"
INSTALL = "pip install 'lanikai[report]'"
"""The command that installs what a report is made with."""
Tone = Literal["", "good", "bad", "unsure"]


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    - `text`: as it is shown.
    - `value`: that by which its column is sorted: a number, else text.
    - `tone`: a verdict's colour; the words say the same.
    - `link`: the name of a part of this page, or "".
    """

    text: str
    value: float | str | None = None
    tone: Tone = ""
    link: str = ""

    @property
    def sort(self) -> str:
        """The value for the script that sorts; empty cells come last."""
        if self.value is None:
            return ""
        return repr(self.value) if isinstance(self.value, int | float) else self.value


@dataclass(frozen=True)
class Column:
    """A column: its heading, and whether it holds numbers (to the right, sorted as such)."""

    name: str
    numeric: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that sorts.

    - `caption`: its name.
    - `columns`, `rows`: a row has a `Cell` for each column; the first one is the row's heading.
    - `note`: a sentence below it.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A plot that zooms.

    - `title`: its name.
    - `about`: a sentence or two: axes, units, marks.
    - `data`, `layout`: Plotly's. Colours are `@0` to `@7` and `@text`, `@muted`, `@grid`, `@page`: the page's theme
      has them.
    - `height`: pixels.
    - `table`: the same numbers, or None.
    """

    kind: ClassVar[str] = "chart"
    title: str
    about: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 380
    table: Table | None = None

    @property
    def figure(self) -> str:
        """Traces and layout as JSON for a script element."""
        return script_json({"data": list(self.data), "layout": dict(self.layout), "height": self.height})


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """A chart whose axes the reader chooses.

    - `columns`: values by name, a list each, all of one length.
    - `parameters`, `results`: names for the horizontal and the vertical axis.
    - `labels`: how names are shown.
    - `x`, `y`, `by`: what is chosen at first. `by` is a name of `parameters`, or `*`: all others.
    - `element`, `first`: what numbers the flows of a point, and the first one's number; "" where points have one row.
    - `of_flows`: the results that each flow has for itself. The others stand in each flow's row alike.
    - `student`: the factor of a 95% interval of 2, 3, ... values.
    """

    kind: ClassVar[str] = "explorer"
    title: str
    about: str
    columns: Mapping[str, Sequence[Any]]
    parameters: Sequence[str]
    results: Sequence[str]
    labels: Mapping[str, str]
    x: str
    y: str
    by: str
    student: Sequence[float]
    element: str = ""
    first: int = 0
    of_flows: Sequence[str] = ()
    height: int = 420

    @property
    def data(self) -> str:
        """All of it as JSON for a script element."""
        return script_json(
            {
                "columns": {name: list(values) for name, values in self.columns.items()},
                "parameters": list(self.parameters),
                "labels": dict(self.labels),
                "student": list(self.student),
                "element": self.element,
                "first": self.first,
                "of_flows": list(self.of_flows),
                "height": self.height,
            }
        )


@dataclass(frozen=True)
class Note:
    """A paragraph; `tone` "unsure" marks what is missing."""

    kind: ClassVar[str] = "note"
    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Command:
    """A command line, with a button that copies it."""

    kind: ClassVar[str] = "command"
    text: str
    about: str = "Command"


@dataclass(frozen=True)
class Picture:
    """A PNG, inside the page, with words in its place for who cannot see it."""

    kind: ClassVar[str] = "picture"
    png: bytes
    alt: str

    @property
    def source(self) -> str:
        """The bytes as an address that holds them."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Parts under a heading that opens and closes."""

    kind: ClassVar[str] = "fold"
    name: str
    title: str
    badge: str
    tone: Tone
    parts: Sequence[Part]
    open: bool = False


Part = Table | Chart | Explorer | Note | Command | Picture | Fold


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading. `name` is its address in the page."""

    name: str
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page.

    - `title`, `lead`: its heading and the sentence below.
    - `verdict`, `tone`: the outcome in a few words.
    - `facts`: a few names with values, shown at the top.
    - `sections`: the rest.
    - `made`: when and by what version.
    """

    title: str
    lead: str
    verdict: str
    tone: Tone
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    made: str


def plain(text: Any) -> str:
    """A text for a plot, which would read tags and entities in it."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def script_json(value: Any) -> str:
    """JSON that is safe inside of a script element: no tag can end it. Numbers that JSON has not are null."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def render(page: Page) -> str:
    """The HTML of a page. Raises MissingTool where the extra `report` is not installed."""
    try:
        import jinja2
        from markupsafe import Markup

        from .library import plotly_library
    except ImportError:
        raise MissingTool("plotly or jinja2, which a report is made with,", INSTALL) from None
    library = plotly_library()
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    hashes = " ".join(f"'{source_hash(text)}'" for text in (script, library.text))
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"
    text = environment.get_template("page.html").render(
        page=page,
        policy=policy,
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        script=Markup(script),
        library=library.packed,
        safe=Markup,
        numbers=Counter(),
    )
    return text.strip() + "\n"


class Counter:
    """Numbers from 1 on, for the addresses of a page's parts."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """The next number."""
        self._last += 1
        return self._last


def source_hash(script: str) -> str:
    """The name by which a policy allows a script: that of its content."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
