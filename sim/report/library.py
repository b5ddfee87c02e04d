"""The plotting library, packed: the page unpacks it in the browser, which makes a file of 2 MB instead of 5."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from functools import cache

from plotly.offline import get_plotlyjs

__all__ = ["Library", "plotly_library"]


@dataclass(frozen=True)
class Library:
    """The library as the browser runs it (`text`), and as the page holds it (`packed`: gzip, base64)."""

    text: str
    packed: str


@cache
def plotly_library() -> Library:
    """Plotly's JavaScript, whole: the package has no smaller part. The same version gives the same bytes."""
    text = get_plotlyjs()
    return Library(text, base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())
