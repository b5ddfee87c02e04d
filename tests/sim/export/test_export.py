"""`lanikai verilog`: what it writes is used in plain Verilog, is the block's behaviour, and is the same every time."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.registers import load
from lanikai.sim.cli import program
from lanikai.sim.export import expression
from lanikai.sim.export import registers as registers_module
from lanikai.sim.export.blocks import EXPORTS, configure_export
from lanikai.sim.export.export import export, top_name
from lanikai.sim.export.ports import block_ports
from lanikai.sim.export.tidy import tidy
from support.sim.verilog_benches import HAS_ICARUS, NO_ICARUS, icarus, lint, twins, verilate

HERE = Path(__file__).parent
PAGE = Path(__file__).resolve().parents[3] / "docs" / "verilog.md"
USES = {
    "router": ["restart=false"],
    "nic": ["preset=tiny"],
    "network": ["topology=chain", "preset=lanai4", "restart=false"],
    "rate-control": ["preset=tiny"],
}
"""The blocks that a testbench uses: their settings."""


def example() -> str:
    """The testbench of docs/verilog.md."""
    return re.search(r"```verilog\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


def bench(what: str, folder: Path) -> Path:
    """The testbench of a block: a file here, or the page's."""
    if what == "router":
        (folder / "router_tb.v").write_text(example())
        return folder / "router_tb.v"
    return HERE / f"{what.replace('-', '_')}_tb.v"


def written(what: str, folder: Path, settings: list[str] | None = None) -> Path:
    """A folder `out` in `folder` with a block in it, made once however many tests look at it."""
    settings = USES[what] if settings is None else settings
    shutil.copytree(_made(what, tuple(settings)), folder / "out")
    return folder / "out"


@cache
def _made(what: str, settings: tuple[str, ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lanikai-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    export(what, configure_export(what, list(settings)), folder / "out", settings=settings)
    return folder / "out"


@pytest.mark.skipif(not HAS_ICARUS, reason=NO_ICARUS)
@pytest.mark.parametrize("standard", ["2005", "2012"])
@pytest.mark.parametrize("what", USES)
def test_a_block_is_used_in_plain_verilog(what, standard, tmp_path):
    out = written(what, tmp_path)
    assert icarus(out, bench(what, tmp_path), standard=standard).splitlines()[0] == "PASS"


@pytest.mark.parametrize(
    "what", [what if what == "router" else pytest.param(what, marks=pytest.mark.full) for what in USES]
)
def test_a_block_is_used_in_plain_verilog_under_verilator(what, tmp_path):
    if what == "router" and HAS_ICARUS:
        pytest.skip("the same testbench runs under Icarus Verilog")
    assert verilate(written(what, tmp_path), bench(what, tmp_path)).splitlines()[0] == "PASS"


@pytest.mark.skipif(not HAS_ICARUS, reason=NO_ICARUS)
def test_the_testbenches_can_fail(tmp_path):
    """An inverted port is noticed."""
    out = written("rate-control", tmp_path)
    source = out / "lanikai_rate_control.v"
    text = source.read_text()
    changed = text.replace("assign dispatch__valid = ", "assign dispatch__valid = !", 1)
    assert changed != text
    source.write_text(changed)
    assert "FAIL" in icarus(out, bench("rate-control", tmp_path))


@pytest.mark.parametrize("what", USES)
def test_a_linter_has_nothing_to_say(what, tmp_path):
    assert lint(written(what, tmp_path), top_name(what)) == ""


TWINS = [
    ("vl-arbiter/round-robin", ["vls=4"]),
    ("rate-control", ["preset=tiny"]),
    ("host-dma", ["preset=tiny"]),
    ("router", ["preset=tiny"]),
    ("vl-arbiter/two-level", ["vls=4", "entries=8"]),
    ("completion", ["preset=lanai7", "completion_queues=4", "owners=4"]),
    ("nic", ["preset=tiny", "pipelined=true", "rate_structure=tree"]),
]


def run_twins(what: str, settings: list[str], tmp_path: Path, run, seed: int) -> str:
    out = written(what, tmp_path, settings)
    component = EXPORTS[what].make(configure_export(what, settings))
    (tmp_path / "source.v").write_text(to_verilog(component, name="source"))
    (tmp_path / "twins.v").write_text(
        twins(block_ports(component), top_name(what), "source", cycles=400, seed=seed)
    )
    return run(out, tmp_path / "twins.v", tmp_path / "source.v")


@pytest.mark.skipif(not HAS_ICARUS, reason=NO_ICARUS)
@pytest.mark.parametrize(("what", "settings"), TWINS, ids=[what for what, _ in TWINS])
def test_the_text_behaves_as_what_it_was_made_from(what, settings, tmp_path):
    """Random inputs (seed 1) to both, all outputs compared in every cycle."""
    assert run_twins(what, settings, tmp_path, icarus, 1).splitlines()[-1] == "PASS"


@pytest.mark.full
@pytest.mark.parametrize(("what", "settings"), TWINS[:4], ids=[what for what, _ in TWINS[:4]])
def test_the_text_behaves_as_what_it_was_made_from_under_verilator(what, settings, tmp_path):
    assert run_twins(what, settings, tmp_path, verilate, 2).splitlines()[0] == "PASS"


class Widened(wiring.Component):
    """The sum of a number's inverse and another number, a bit wider than both, in a register."""

    def __init__(self):
        super().__init__({"a": In(4), "b": In(4), "y": Out(5)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.y.eq(~self.a + self.b)
        return m


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "lost"])
def test_a_lost_width_is_noticed(kept, tmp_path, monkeypatch):
    """Without the braces that keep an expression to its width, the comparison fails."""
    real = expression._write

    def wide(node, widths, surroundings, *, top=False):
        if node.kind == "held":
            return f"({real(node.parts[0], widths, None, top=True)})"
        return real(node, widths, surroundings, top=top)

    if not kept:
        monkeypatch.setattr(expression, "_write", wide)
    component = Widened()
    ports = block_ports(component)
    [module] = tidy(to_verilog(component, name="readable"), ports=[port.name for port in ports])
    assert ("{~a} + b" if kept else "(~a) + b") in module.text
    if HAS_ICARUS:
        (tmp_path / "readable.v").write_text(module.text + to_verilog(Widened(), name="source"))
        (tmp_path / "readable.f").write_text("readable.v\n")
        (tmp_path / "twins.v").write_text(twins(ports, "readable", "source", cycles=40, seed=1))
        assert icarus(tmp_path, tmp_path / "twins.v").startswith("PASS" if kept else "FAIL")


def test_every_text_is_free_of_what_yosys_made_up(tmp_path):
    out = written("nic", tmp_path)
    files = (out / "lanikai_nic.f").read_text().split()
    assert sorted(files) == sorted(path.name for path in out.glob("*.v"))
    for name in files:
        text = (out / name).read_text()
        code = re.sub(r"//.*", "", text)
        assert text.count("\nmodule ") == 1 and f"\nmodule {name.removesuffix('.v')} (" in text
        assert not re.search(r"\\|\(\*|\$(?!signed|unsigned)", code), name


def test_ports_keep_the_names_and_order_of_the_signature(tmp_path):
    out = written("nic", tmp_path)
    component = EXPORTS["nic"].make(configure_export("nic", USES["nic"]))
    head = re.search(r"\nmodule lanikai_nic \(\n(.*?)\n\);", (out / "lanikai_nic.v").read_text(), re.DOTALL)[
        1
    ]
    found = [re.search(r"(\w+)(?: = .*)?,?$", line)[1] for line in head.splitlines()]
    assert found == [port.name for port in block_ports(component)]
    assert found[:4] == ["clk", "rst", "tx__payload", "tx__valid"]


def test_constraints_name_every_port(tmp_path):
    out = tmp_path / "out"
    config = configure_export("router", [])
    export("router", config, out, clock_hz=125_000_000)
    lines = (out / "lanikai_router.sdc").read_text().splitlines()
    assert lines[2] == "create_clock -name clk -period 8.000 [get_ports {clk}]"
    delays = [line for line in lines if line.startswith("set_")]
    ports = block_ports(EXPORTS["router"].make(config))
    assert len(delays) == len(ports) - 1
    assert "set_input_delay -clock clk 3.200 [get_ports {rx__0__payload[*]}]" in delays
    assert "set_output_delay -clock clk 3.200 [get_ports {activity}]" in delays


def test_registers_are_those_of_the_card(tmp_path):
    """The SystemRDL, read by the project's own reader, has every register; the C header compiles and has its mask."""
    out = written("nic", tmp_path)
    config = configure_export("nic", USES["nic"])
    text = (out / "lanikai_nic_processor.rdl").read_text()
    assert "registers @ 0x100000" in text
    # The project's reader takes an address map of registers alone.
    flat = tmp_path / "flat.rdl"
    flat.write_text(text.replace("    regfile {\n", "").replace("    } registers @ 0x100000;\n", ""))
    assert {name: one.fields for name, one in load(flat).items()} == {
        name: one.fields for name, one in nic_registers(config).items()
    }
    program_text = (
        '#include <stddef.h>\n#include "lanikai_nic_processor.h"\n'
        '_Static_assert(LANIKAI_NIC_PROCESSOR__REGISTERS__ISR__TIMER_bm == 1 << 5, "");\n'
        '_Static_assert(offsetof(lanikai_nic_processor_t, registers.RATE_IDT) == 0x100064, "");\n'
    )
    done = subprocess.run(
        ["g++", "-xc++", "-D_Static_assert=static_assert", "-fsyntax-only", "-I.", "-"],
        input=program_text,
        cwd=out,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "<ipxact:name>RATE_IDT</ipxact:name>" in (out / "lanikai_nic_processor.xml").read_text()
    assert {path.suffix for path in out.glob("lanikai_nic_host.*")} == {".rdl", ".h", ".xml"}


def test_a_router_has_the_registers_of_its_agent_and_a_block_has_none(tmp_path):
    out = written("router", tmp_path, ["preset=tiny", "vl_arbiter=table_fast"])
    assert "VL_TABLE_ENTRY @ 0x020" in (out / "lanikai_router_agent.rdl").read_text()
    (tmp_path / "two").mkdir()
    assert not list(written("rate-control", tmp_path / "two").glob("*.rdl"))


def test_the_same_bytes_every_time(tmp_path):
    one, two = written("nic", tmp_path), tmp_path / "two"
    export("nic", configure_export("nic", USES["nic"]), two, settings=USES["nic"])
    found = [{path.name: path.read_bytes() for path in out.iterdir()} for out in (one, two)]
    assert found[0] == found[1]


def run(arguments: list[str], capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        program.main(["verilog", *arguments])
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rooter"], "unknown block 'rooter' (did you mean 'router'?); valid blocks:"),
        (
            ["router", "--set", "port=5"],
            "--set 'port=5': unknown parameter 'port' of router (did you mean 'ports'?); valid:",
        ),
        (["router", "--set", "ports"], "--set 'ports': not of the form key=value; valid:"),
        (["router", "--set", "ports=1"], "router: RouterConfig.ports = 1: must be 2 to 64"),
        (["network", "--set", "ports=3"], "network: RouterConfig.ports = 3: a mesh needs at least 5"),
        (
            ["network", "--set", "topology=rng(4)"],
            "network: topology = 'rng(4)': one of single, chain, mesh, ",
        ),
        (
            ["network", "--set", "topology=ring(4)", "--set", "width=3"],
            "network: width: ring(4) has its sizes in ",
        ),
        (["network", "--set", "vls=17"], "network: LinkConfig.vls = 17: "),
        (["nic", "--clock-mhz", "0"], "Invalid value for '--clock-mhz': "),
    ],
)
def test_wrong_input_is_a_line_and_status_2_and_leaves_nothing(arguments, message, tmp_path, capsys):
    """Valid names may stand below the line."""
    status, said = run([*arguments, "--out", str(tmp_path / "out")], capsys)
    first, *below = said.splitlines()
    assert status == 2 and first.startswith(f"lanikai: {message}")
    assert all(line.startswith("  ") for line in below)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("mine")
    status, said = run(["rate-control", "--out", str(tmp_path)], capsys)
    assert (status, said) == (
        2,
        f"lanikai: --out {str(tmp_path)!r}: the folder is not empty: name a new or an empty one\n",
    )
    status, said = run(["rate-control", "--out", str(tmp_path / "mine")], capsys)
    assert status == 2 and "that is no folder" in said
    status, said = run(["rate-control", "--out", str(tmp_path / "no" / "out")], capsys)
    assert status == 2 and f"there is no folder {str(tmp_path / 'no')!r} to make it in" in said
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failure_leaves_nothing_half_done(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(registers_module, "_FORMATS", {"no-such-format": "x"})
    status, said = run(["nic", "--set", "preset=tiny", "--out", str(tmp_path / "out")], capsys)
    assert status == 1 and "peakrdl no-such-format failed with status" in said
    assert list(tmp_path.iterdir()) == []


def test_without_peakrdl_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(registers_module.importlib.util, "find_spec", lambda name: None)
    status, said = run(["nic", "--set", "preset=tiny", "--out", str(tmp_path / "out")], capsys)
    assert status == 3 and said.startswith("lanikai: peakrdl-cli is missing; install it with: ")
    assert "[export]" in said and list(tmp_path.iterdir()) == []
    # A block without registers needs none of it.
    export("rate-control", configure_export("rate-control", ["preset=tiny"]), tmp_path / "out")
    assert (tmp_path / "out" / "lanikai_rate_control.v").is_file()


def test_an_empty_folder_is_taken_the_present_one_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = export("rate-control", configure_export("rate-control", ["preset=tiny"]), Path("."))
    assert files == sorted(path.name for path in tmp_path.iterdir()) and "lanikai_rate_control.v" in files


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    status, said = run(["rate-control", "--out", "/proc/lanikai"], capsys)
    assert status == 2 and said.startswith("lanikai: --out '/proc/lanikai': cannot be written: ")
