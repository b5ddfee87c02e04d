"""Configuration: what is refused, in which words, and what follows from what."""

from fractions import Fraction

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, RouterConfig, preset, preset_names


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: LinkConfig(width=64),
            "LinkConfig: unknown key 'width'; valid keys: "
            "flit_bits, vls, rate_num, rate_den, delay_cycles, restart, guard_cycles, "
            "guard_packet_flits, hop_bits",
        ),
        (lambda: LinkConfig(flit_bits=48), "LinkConfig.flit_bits = 48: must be 32, 64 or 128"),
        (lambda: LinkConfig(vls=17), "LinkConfig.vls = 17: must be 1 to 16"),
        (
            lambda: LinkConfig(rate_num=3, rate_den=2),
            "LinkConfig: rate_num/rate_den = 3/2: a link carries at most one flit a cycle",
        ),
        (
            lambda: RouterConfig(ports=5, link=LinkConfig(hop_bits=2)),
            "RouterConfig: ports = 5: a hop of 2 bits names at most 4 ports; raise link.hop_bits",
        ),
        (
            lambda: RouterConfig(input_buffer_flits=1),
            "RouterConfig.input_buffer_flits = 1: must be 2 to 1024",
        ),
        (lambda: NicConfig(sram_bytes=3000), "NicConfig: sram_bytes = 3000: a power of two"),
        (
            lambda: NicConfig(bus_bits=64, link=LinkConfig(flit_bits=32)),
            "NicConfig: bus_bits = 64: at most link.flit_bits = 32 (the SRAM's word)",
        ),
        (lambda: NicConfig(mtu_bytes=100), "NicConfig: mtu_bytes = 100: a multiple of the flit's 8 bytes"),
        (
            lambda: NicConfig(rtc_cycles_num=1, rtc_cycles_den=2),
            "NicConfig: rtc_cycles_num/rtc_cycles_den = 1/2: a tick is at least one cycle",
        ),
        (
            lambda: preset(RouterConfig, "lanai5"),
            "RouterConfig: unknown preset 'lanai5'; valid presets: tiny, lanai4, yum2006, high_throughput, lanai7, "
            "iba, via5, lanai41",
        ),
    ],
)
def test_a_bad_value_is_one_clear_line(build, message):
    with pytest.raises(ConfigError) as error:
        build()
    assert str(error.value) == message


def test_a_configuration_is_frozen_and_a_changed_copy_is_checked():
    config = LinkConfig(vls=4)
    with pytest.raises(ValueError, match="frozen"):
        config.vls = 5
    assert config.replace(vls=2).vls == 2
    assert config.vls == 4
    with pytest.raises(ConfigError, match=r"^LinkConfig\.vls = 0: "):
        config.replace(vls=0)


def test_derived_values():
    narrow, wide = LinkConfig(flit_bits=32, hop_bits=3, vls=3), LinkConfig(flit_bits=128, hop_bits=5)
    assert (narrow.flit_bytes, narrow.header_flits, narrow.max_hops, narrow.vl_bits) == (4, 4, 8, 2)
    assert (wide.flit_bytes, wide.header_flits, wide.max_hops, wide.vl_bits) == (16, 1, 9, 1)
    nic = preset(NicConfig, "lanai4")
    assert nic.link.rate == Fraction(20, 33)
    # 1.28 Gbit/s at 33 MHz, ticks of half a microsecond.
    assert nic.link.rate * nic.link.flit_bits * nic.clock_hz == 1_280_000_000
    assert nic.tick_seconds == Fraction(1, 2_000_000)
    assert nic.sram_words * nic.word_bytes == nic.sram_bytes
    assert nic.packet_bytes == 16 + 4096


@pytest.mark.parametrize(
    ("name", "clock_hz", "bus_bits", "gbit_per_s"),
    [("lanai4", 33_000_000, 32, "1.28"), ("lanai7", 66_000_000, 64, "1.28"), ("iba", 66_000_000, 64, "1.6")],
)
def test_profiles_have_the_speeds_of_their_documents(name, clock_hz, bus_bits, gbit_per_s):
    nic = preset(NicConfig, name)
    assert (nic.clock_hz, nic.bus_bits) == (clock_hz, bus_bits)
    assert nic.link.rate * nic.link.flit_bits * nic.clock_hz == Fraction(gbit_per_s) * 10**9
    assert nic.tick_seconds == Fraction(1, 2_000_000)
    assert nic.link == preset(RouterConfig, name).link == preset(LinkConfig, name)
    queued = nic.host_dma_queue_entries, nic.send_queue_entries, nic.receive_queue_entries
    assert queued == ((0, 0, 0) if name == "lanai4" else (32, 32, 2))
    # VL buffers at the port are yum-2006's (3.2), with room for two packets of 40 flits (6.1).
    assert (nic.vl_packets, nic.processors) == (2 if name == "iba" else 0, 1)
    assert not nic.vl_packets or (nic.packet_flits, nic.vl_buffer_flits, nic.input_buffer_flits) == (
        40,
        80,
        80,
    )


def test_a_cards_link_may_be_reset_at_either_end_unless_that_is_turned_off():
    """This holds with a user's link too. A router has it where its profile is a card's, or its cluster (tests/sim)."""
    assert NicConfig().link.restart is True
    assert NicConfig(link=LinkConfig(vls=4)).link == LinkConfig(vls=4, restart=True)
    assert preset(NicConfig, "lanai7", link=LinkConfig()).link.restart is True
    assert NicConfig(link=LinkConfig(restart=False)).link.restart is False
    for name in preset_names(NicConfig):
        assert preset(RouterConfig, name).link.restart is preset(NicConfig, name).link.restart is True
    assert not RouterConfig().link.restart and not preset(RouterConfig, "yum2006").link.restart


@pytest.mark.parametrize("part", [LinkConfig, RouterConfig, NicConfig])
def test_presets_are_there_and_can_be_changed(part):
    assert preset_names(part)[:2] == ["tiny", "lanai4"]
    for name in preset_names(part):
        assert isinstance(preset(part, name), part)
    assert preset(RouterConfig, "lanai4", ports=8).ports == 8
