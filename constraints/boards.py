"""The boards, by name: a new one is a folder beside this file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from .board import Board
from .ecpix5_85f.board import Ecpix5
from .icebreaker.board import IceBreaker
from .orangecrab_25f.board import OrangeCrab
from .ulx3s_85f.board import Ulx3s85F
from .versa_5g.board import Versa5G

__all__ = ["BOARDS"]

BOARDS: Mapping[str, Board] = {
    "ulx3s-85f": Ulx3s85F(),
    "versa-5g": Versa5G(),
    "ecpix5-85f": Ecpix5(),
    "orangecrab-25f": OrangeCrab(),
    "icebreaker": IceBreaker(),
}
"""Name, as `lanikai synth --board` and `lanikai fpga` take it -> board."""
