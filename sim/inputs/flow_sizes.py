"""Distributions of flow sizes: a line a point, `bytes share`, the share in percent or as a fraction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..user_files import at_line, quoted, read_data_lines
from .errors import InputError

__all__ = ["WEBSEARCH", "FlowSizes", "read_flow_sizes"]

WEBSEARCH = Path(__file__).parent / "examples" / "websearch.cdf"
"""Sizes of a web search, which come with the package."""
_FORM = "bytes share"


@dataclass(frozen=True, kw_only=True)
class FlowSizes:
    """A cumulative distribution: of the flows, the fraction `shares[i]` has at most `sizes_bytes[i]` bytes. Between two
    points it is a straight line."""

    sizes_bytes: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def mean_bytes(self) -> float:
        """The mean size."""
        points = list(zip(self.sizes_bytes, self.shares, strict=True))
        first = points[0][0] * points[0][1]
        return first + sum((b[1] - a[1]) * (a[0] + b[0]) / 2 for a, b in pairwise(points))

    def size(self, share: float) -> float:
        """The size that the fraction `share` of the flows does not exceed."""
        low_size, low = self.sizes_bytes[0], self.shares[0]
        if share <= low:
            return low_size
        for size, high in zip(self.sizes_bytes[1:], self.shares[1:], strict=True):
            if share <= high:
                return low_size + (size - low_size) * (share - low) / (high - low) if high > low else size
            low_size, low = size, high
        return low_size


def read_flow_sizes(path: Path) -> FlowSizes:
    """The distribution in a file. Its last share is 100 or 1, which tells percent from fractions.

    Raises InputError: file, line, what is there, what would be right.
    """
    points: list[tuple[float, float]] = []
    number = 0
    for number, text in read_data_lines(path, "flow sizes", InputError):
        words = text.split()
        if len(words) != 2:
            raise at_line(path, number, f"{len(words)} fields in {quoted(text)}", f"2: {_FORM}", InputError)
        size, share = (
            _number(path, number, name, word) for name, word in zip(_FORM.split(), words, strict=True)
        )
        if share > 100:
            raise at_line(path, number, f"share = {quoted(words[1])}", "at most 100 percent", InputError)
        if points and size <= points[-1][0]:
            raise at_line(
                path,
                number,
                f"bytes = {quoted(words[0])}",
                f"more than those before, {points[-1][0]:g}",
                InputError,
            )
        if points and share < points[-1][1]:
            raise at_line(
                path,
                number,
                f"share = {quoted(words[1])}",
                f"no less than that before, {points[-1][1]:g}",
                InputError,
            )
        points.append((size, share))
    if not points:
        raise InputError(f"flow sizes {str(path)!r} has no line: a line a point, {_FORM}")
    whole = points[-1][1]
    if whole not in (1, 100):
        raise at_line(
            path, number, f"the last share {whole:g}", "100, or 1 if shares are fractions", InputError
        )
    if points[-1][0] == 0:
        raise at_line(path, number, "no flow has a byte", "a size above 0", InputError)
    return FlowSizes(
        sizes_bytes=tuple(size for size, _ in points), shares=tuple(share / whole for _, share in points)
    )


def _number(path: Path, line: int, name: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e15:
        raise at_line(path, line, f"{name} = {quoted(word)}", "a number of 0 or more", InputError)
    return value
