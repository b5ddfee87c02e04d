"""Rules for the emitted Verilog, for simulators of either language."""

import re

from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.nic.rtc import Rtc
from lanikai.hdl.router.release_report import ReleaseReports


def test_every_combinational_block_runs_at_time_0():
    """A start value in a declaration is no event in SystemVerilog: `iverilog -g2012` never ran the blocks, and
    `host__arready` was X. Each block has to read a variable that a nonblocking assignment of an `initial` block
    sets."""
    router = RouterConfig(link=LinkConfig(vls=16), ports=3, management=True)
    for component in (
        Rtc(preset(NicConfig, "tiny")),
        Nic(preset(NicConfig, "tiny")),
        # Parts of signals, one of them constant.
        Nic(preset(NicConfig, "via5")),
        ReleaseReports(router),
    ):
        text = to_verilog(component, name="top")
        modules = text.split("\nendmodule")
        blocks = 0
        for module in modules:
            bodies = module.split("always @*")[1:]
            for body in bodies:
                first = body.lstrip().removeprefix("begin").lstrip().splitlines()[0]
                starter = re.fullmatch(r"if \((\\\S+) \) begin end", first.strip())
                assert starter, first
                assert f"  reg {starter[1]} ;\n  initial {starter[1]}  <= 0;\n" in module
                blocks += 1
        assert blocks >= 1
        assert "dump_module" not in re.sub(r"\\\$auto\$verilog_backend\.cc:\d+:dump_module\$\d+ ", "", text)
