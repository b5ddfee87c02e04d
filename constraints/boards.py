"""The boards, by name: a new one is a folder beside this file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from .board import Board
from .ulx3s_85f.board import Ulx3s85F

__all__ = ["BOARDS"]

BOARDS: Mapping[str, Board] = {
    "ulx3s-85f": Ulx3s85F(),
}
"""Name, as `lanikai synth --board` takes it -> board."""
