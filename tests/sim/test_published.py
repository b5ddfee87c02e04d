"""The published numbers: every table has a source; constants agree with the configurations that hold them."""

from __future__ import annotations

from lanikai.hdl.config import NicConfig, RouterConfig, preset
from lanikai.sim.published import CONSTANTS, source, table, tables


def test_every_table_names_its_source():
    assert set(tables()) >= CONSTANTS
    assert all(source(name) for name in tables())


def test_the_lanai4_profile_is_the_published_card():
    nic, rtc = preset(NicConfig, "lanai4"), table("rtc")
    assert nic.tick_seconds * 10**6 == rtc["tick_us"]
    assert nic.clock_hz == rtc["nic_clock_mhz"] * 10**6
    assert nic.mtu_bytes == rtc["mtu_bytes"] and nic.sram_bytes == rtc["sram_bytes"]
    assert nic.link.rate * nic.link.flit_bits * nic.clock_hz == rtc["link_mbit_per_s"] * 10**6


def test_the_router_has_the_published_buffers():
    router = preset(RouterConfig, "lanai4")
    assert router.input_buffer_flits == router.output_buffer_flits == table("router")["buffer_flits"]
