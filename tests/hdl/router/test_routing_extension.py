"""A routing function of a user's: one new file and one line in the registry, in a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lanikai.hdl

MODULE = '''
"""O1TURN (Seo and others 2005): x first on even VLs, y first on odd ones."""

from amaranth import Module, Mux

from .grid import COORDINATE_BITS, GridRouting


class O1TurnRouting(GridRouting):
    """The packet keeps its VL, which says the order of the dimensions. Each VL has an acyclic graph of its own."""

    sees_vl = True

    @classmethod
    def decide(cls, config, arrival):
        x, y = arrival.route % 32, arrival.route >> 5
        here, base = arrival.position, cls.first_port(config)
        along_x = base + (1 if x > here["x"] else 2) if x != here["x"] else None
        along_y = base + (3 if y > here["y"] else 4) if y != here["y"] else None
        if x > here["last_x"] or y > here["last_y"]:
            return None, arrival.vl
        first, second = (along_y, along_x) if arrival.vl % 2 else (along_x, along_y)
        return first or second or base, arrival.vl

    def elaborate(self, platform):
        m = Module()
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        here, base = self.position, self.first_port(self.config)
        goes_x, goes_y = x != here.x, y != here.y
        with m.If((x <= here.last_x) & (y <= here.last_y)):
            with m.If(goes_x & (~goes_y | ~self.vl[0])):
                m.d.comb += self.port[base + 1 : base + 3].eq(Mux(x > here.x, 1, 2))
            with m.Elif(goes_y):
                m.d.comb += self.port[base + 3 : base + 5].eq(Mux(y > here.y, 1, 2))
            with m.Else():
                m.d.comb += self.port[base].eq(1)
        return m
'''
USE = """
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.hdl.router.routing import ROUTING
from support.hdl.routing_twin import hold

function = ROUTING["o1turn"]
assert hold(function, "o1turn", seed=1) > 0
router = RouterConfig(link=LinkConfig(vls=2, hop_bits=3), ports=5, routing="o1turn")
network = mesh(3, 3, router=router)
assert network.path(0, 4) == [(0, 1), (1, 3), (4, 0)]
assert network.path(0, 4, vl=1) == [(0, 3), (3, 1), (4, 0)]
assert network.source_route(0, 5) == 2 | 1 << 5
assert ".position(20'h" in network.verilog("net") and "module router" in network.block_verilog()["router"]
# Both orders on one VL have a cycle: the check follows the new function.
decide = function.decide
function.decide = classmethod(
    lambda cls, config, arrival: (
        decide(config, arrival._replace(vl=arrival.route + arrival.route // 32))[0], arrival.vl
    )
)
try:
    mesh(3, 3, router=router)
except ConfigError as error:
    print(error)
"""


def test_a_new_function_is_one_file_and_one_line(tmp_path):
    package = tmp_path / "lanikai" / "hdl"
    shutil.copytree(Path(lanikai.hdl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = package / "router" / "routing"
    (folder / "o1turn.py").write_text(MODULE)
    registry = folder / "__init__.py"
    text = registry.read_text()
    imports, entry = "from .source import SourceRouting\n", '    "table": TableRouting,\n'
    assert text.count(imports) == text.count(entry) == 1
    text = text.replace(imports, "from .o1turn import O1TurnRouting\n" + imports)
    registry.write_text(text.replace(entry, '    "o1turn": O1TurnRouting,\n' + entry))
    run = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "routes can deadlock, each waiting for the next: router " in run.stdout and " VL 0" in run.stdout
