"""Tests of virtual networks on hosts run on stand-in cards, and on cards in Python with the firmware itself."""

from __future__ import annotations

import pytest
from support.sim.am_card import AmNet
from support.sim.am_nodes import AmNodes

NETS = {"stand-in": AmNet, "firmware": AmNodes}


@pytest.fixture(params=NETS)
def make(request):
    """The class of a net of nodes with segment drivers."""
    return NETS[request.param]
