"""VL arbiters of a user's: one new file and one line in the registry each, in a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lanikai.hdl

MODULE = '''
"""Highest first: the VL with the largest number goes before the others. And round robin once more."""

from .base import VlArbiter
from .round_robin import RoundRobinVlArbiter


class HighestVlArbiter(VlArbiter):
    """It may keep a VL waiting for ever."""

    def pick(self, m, requests, tails, grant, advance):
        for v in range(self.vls):
            with m.If(requests[v]):
                m.d.comb += grant.eq(1 << v)


class OtherRoundRobin(RoundRobinVlArbiter):
    """Round robin by another name: it does not weigh either."""
'''
USE = """
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.scheduler import has_tables, looks_ahead, weighs_outputs
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from support.hdl.vl_models import play

def check(requests, tails, advance, grant):
    assert grant == (1 << requests.bit_length() - 1 if requests else 0)

play(make_vl_arbiter("highest", vls=4), [(r, 0, 1) for r in range(16)], check)
tiny = RouterConfig(link=LinkConfig(vls=2, flit_bits=32), ports=2, input_buffer_flits=4)
made = {}
for name in ("round_robin", "other", "highest", "fixed_priority"):
    router = tiny.replace(vl_arbiter=name)
    weighs = name in ("highest", "fixed_priority")
    assert weighs_outputs(router) == looks_ahead(router) == weighs and not has_tables(router)
    made[name] = to_verilog(Router(router), name="router")
# One that does not weigh makes the router that round robin makes; one that weighs has an arbiter an output, too.
assert made["other"] == made["round_robin"]
modules = {name: text.count("endmodule") for name, text in made.items()}
assert modules["highest"] == modules["fixed_priority"] != modules["other"], modules
card = preset(
    NicConfig, "tiny", vl_arbiter="highest", vl_packets=2, send_queue_entries=2, mtu_bytes=64, input_buffer_flits=32
)
assert "VL_TABLE_ENTRY" not in nic_registers(card) and "SEND_VLS" in nic_registers(card)
assert "VL_TABLE_ENTRY" in nic_registers(card.replace(vl_arbiter="table_slow"))
try:
    make_vl_arbiter("lowest", vls=2)
except ConfigError as error:
    print(error)
"""


def test_a_new_arbiter_is_one_file_and_one_line(tmp_path):
    package = tmp_path / "lanikai" / "hdl"
    shutil.copytree(Path(lanikai.hdl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = package / "vl_arbiter"
    (folder / "highest.py").write_text(MODULE)
    registry = folder / "registry.py"
    text = registry.read_text()
    imports, entry = "from .round_robin import", '    "round_robin": RoundRobinVlArbiter,\n'
    assert text.count(imports) == text.count(entry) == 1
    text = text.replace(imports, "from .highest import HighestVlArbiter, OtherRoundRobin\n" + imports)
    lines = '    "highest": HighestVlArbiter,\n    "other": OtherRoundRobin,\n'
    registry.write_text(text.replace(entry, entry + lines))
    run = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "one of deficit, fcfs, fcfs_packet, fixed_priority, highest, other, round_robin" in run.stdout
