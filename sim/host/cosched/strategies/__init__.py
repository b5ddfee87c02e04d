"""The strategies by name: a new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from ..strategy import Strategy
from .dcs import Dcs
from .dcs_sb import DcsSpinBlock
from .dcs_sy import DcsSpinYield
from .gang import Gang
from .local import Local
from .pb import Pb
from .pb_sb import PbSpinBlock
from .pb_sy import PbSpinYield
from .pbf import Pbf
from .pbt import Pbt
from .sb import SpinBlocking
from .sy import SpinYielding

__all__ = ["STRATEGIES"]

STRATEGIES: Mapping[str, type[Strategy]] = {
    "local": Local,
    "sb": SpinBlocking,
    "dcs": Dcs,
    "dcs_sb": DcsSpinBlock,
    "pb": Pb,
    "pbt": Pbt,
    "pb_sb": PbSpinBlock,
    "sy": SpinYielding,
    "dcs_sy": DcsSpinYield,
    "pb_sy": PbSpinYield,
    "gang": Gang,
    "pbf": Pbf,
}
"""Name -> class of every strategy: the ten of the thesis in the order of table 6.4, the ideal, and one of our own."""
