"""Set-ups in an experiment's terms: they give the loads that they name, and refuse impossible ones."""

import math

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.ports import CLASS, Choice, Mode, VlChoice
from lanikai.hdl.traffic.random import seed_words
from lanikai.hdl.traffic.setup import ClassSetup, random_spacing, trace_rows
from support.hdl.generator_model import ONE, GeneratorModel, Settings

CONFIG = TrafficConfig(link=LinkConfig(flit_bits=128, vls=16), nodes=16)


def settings_of(setup, node=5, config=CONFIG):
    """The model's settings from the words that would be written."""
    fields = {name: CLASS[name].unpack(word) for name, word in setup.words(node, config)}
    assert list(fields)[-1] == "CONTROL" and set(fields) == set(CLASS)
    control = fields["CONTROL"]
    return Settings(
        mode=Mode(control["mode"]),
        pattern=Choice(control["pattern"]),
        vl_choice=VlChoice(control["vl_choice"]),
        vl_first=control["vl_first"],
        vl_count=control["vl_count"],
        service_level=control["service_level"],
        flits=fields["LENGTH"]["flits"],
        spacing=fields["SPACING"]["cycles"],
        on=fields["ON"]["cycles"],
        off=fields["OFF"]["cycles"],
        node=fields["DESTINATION"]["node"],
        fraction=fields["DESTINATION"]["fraction"],
        interval=fields["INTERVAL"]["cycles"],
        first=fields["TRACE"]["first"],
        last=fields["TRACE"]["last"],
        phase=fields["PHASE"]["cycles"],
    )


def births(setup, cycles, trace=()):
    model = GeneratorModel(
        settings=[settings_of(setup)], words=[seed_words(3)], node=5, trace=list(trace), vl_of=[0] * 16
    )
    return [born for now in range(cycles) if (born := model.cycle(now))]


@pytest.mark.parametrize("load", [0.1, 0.7, 1.0])
def test_random_load(load):
    cycles, flits = 100_000, 10
    count = len(births(ClassSetup(load=load, packet_flits=flits, vl_count=15), cycles))
    expected = cycles * load / flits
    assert count == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_other_loads():
    assert len(births(ClassSetup(mode="periodic", load=0.3, packet_flits=40), 40_000)) == 300
    mixed = ClassSetup(mode="on_off", load=0.8, packet_flits=4, on_cycles=300, off_cycles=900)
    assert len(births(mixed, 400_000)) == pytest.approx(20_000, rel=0.2)
    assert random_spacing(1.0) == 0 and random_spacing(0.001) == pytest.approx(999.5 * ONE, rel=1e-3)


@pytest.mark.parametrize("regulated", [False, True])
def test_trace_bursts_and_regulated(regulated):
    rows = trace_rows([100, 0, 41], packet_flits=40, interval_cycles=300, regulated=regulated)
    setup = ClassSetup(mode="trace", interval_cycles=300, last_frame=2)
    seen = [(born.due, born.flits) for born in births(setup, 900, rows)]
    step = (100, 150) if regulated else (0, 0)
    assert seen == [(1, 40), (1 + step[0], 40), (1 + 2 * step[0], 20), (601, 40), (601 + step[1], 1)]


def test_patterns_become_destinations():
    def where(**chosen):
        return [ClassSetup(**chosen).destination(node, CONFIG) for node in range(16)]

    assert where(pattern="bit_complement") == list(range(15, -1, -1))
    assert where(pattern="uniform") == where(pattern="hot_spot", node=2) == [None] * 16
    assert where(pattern="fixed", node=7) == [7] * 16
    assert where(pattern="table", table=(*range(1, 16), 0)) == [*range(1, 16), 0]
    assert settings_of(ClassSetup(pattern="transpose"), node=5).mode == Mode.OFF
    assert settings_of(ClassSetup(pattern="transpose"), node=1).node == 4
    hot = settings_of(ClassSetup(pattern="hot_spot", node=3, hot_fraction=0.25))
    assert (hot.pattern, hot.node, hot.fraction) == (Choice.HOT_SPOT, 3, 1024)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"pattern": "spiral"}, r"ClassSetup: pattern = 'spiral': one of uniform, hot_spot, fixed, table, "),
        (
            {"load": 1e-6},
            r"ClassSetup: load = 1e-06: packets of 40 flits would be more than 2\^20 cycles apart$",
        ),
        ({"first_frame": 3}, r"ClassSetup: last_frame = 0: at least first_frame = 3$"),
        ({"vl_first": 8, "vl_count": 9}, r"ClassSetup: VLs 8 to 16: the link has 0 to 15$"),
        ({"pattern": "fixed", "node": 16}, r"ClassSetup: there is no node 16; nodes are 0 to 15$"),
        ({"pattern": "table"}, r"ClassSetup.table has 0 destinations: one for each of 16 nodes$"),
        (
            {"mode": "trace", "last_frame": 64},
            r"ClassSetup.last_frame = 64: the trace memory has rows 0 to 63$",
        ),
        (
            {"mode": "trace", "interval_cycles": 1 << 31},
            r"ClassSetup.interval_cycles = 2147483648: must be 1 to 2147483647$",
        ),
        (
            {"phase_cycles": 1 << 31},
            r"ClassSetup.phase_cycles = 2147483648: must be 0 to 2147483647$",
        ),
        ({"load": 1.5}, r"ClassSetup.load = 1.5: must be above 0 and at most 1$"),
    ],
)
def test_what_cannot_be_is_one_line(chosen, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        ClassSetup(**chosen).words(0, CONFIG)


def test_a_packet_holds_its_header():
    narrow = CONFIG.replace(link=LinkConfig(flit_bits=32, vls=2))
    with pytest.raises(ConfigError, match=r"^ClassSetup.packet_flits = 3: 4 \(the header\) to 1023$"):
        ClassSetup(packet_flits=3).words(0, narrow)
    with pytest.raises(ConfigError, match=r"^trace: frame 1 has -1 flits: 0 to 16777215$"):
        trace_rows([1, -1], packet_flits=4, interval_cycles=10, regulated=False)
