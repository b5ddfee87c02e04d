"""The pipelined router against a plain expectation of the packets that must come out, where and when."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.router.router import Router

from .test_router import chain, ends_of


@pytest.mark.parametrize("flits", [1, 10, 40])
@pytest.mark.parametrize(
    ("flit_bits", "delay", "routers", "vls"), [(32, 0, 1, 1), (64, 1, 2, 2), (128, 0, 3, 4), (64, 0, 2, 16)]
)
def test_zero_load_latency_is_the_formula(traffic, flits, flit_bits, delay, routers, vls):
    """((D + 1) * S - 1) + N cycles from the head on the first link to the tail on the last, S = 5 + delay."""
    link = LinkConfig(flit_bits=flit_bits, vls=vls, delay_cycles=delay, hop_bits=2)
    config = RouterConfig(link=link, ports=2, pipelined=True)
    top, ends = chain(config, routers)
    packet = traffic.Packet(
        number=3, source=0, hops=[1] * routers, end=1, vl=min(1, vls - 1), flits=flits, start=2
    )
    seen = traffic.run_packets(top, ends, link, [packet], buffer_flits=10)
    head, tail = seen.seen[3]
    start = seen.sent[3][0]
    step = 5 + delay
    assert head - start == routers * step
    assert tail - start == (routers * step - 1) + flits
