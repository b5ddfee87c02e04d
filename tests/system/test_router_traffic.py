"""A mesh of routers under random traffic and random stalls, on Verilator."""

import os

import pytest
from amaranth import Cat, Const, Mux
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.router.routing.choice.duato import DuatoRouting
from lanikai.hdl.router.routing.choice.turns import TurnRouting
from lanikai.hdl.router.routing.choice.valiant import ValiantRouting
from lanikai.hdl.router.routing.torus import TorusRouting
from lanikai.hdl.router.scheduler import has_tables
from lanikai.sim.build.model import Design, Public, build
from lanikai.sim.run import run

CYCLES = 20_000


@pytest.fixture
def traffic():
    """The module with the network and the coroutine, importable in the simulator's process too."""
    from support.system import router_traffic

    return router_traffic


def run_traffic(traffic, name, tmp_path):
    """Builds a network of `router_traffic`, and runs its traffic."""
    network = traffic.NETWORKS[name]
    seed = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
    public = [Public("mesh", "dropped"), Public("mesh", "activity"), Public("mesh", "rst", writable=True)]
    for node in range(len(network.nodes)):
        for end, inputs in (("rx", ("payload", "valid")), ("tx", ("credit_vl", "credit_valid"))):
            public += [
                Public("mesh", f"node{node}_{end}__{member}", writable=member in inputs)
                for member in traffic.MEMBERS
            ]
    if has_agent(network.router):
        for router in range(network.routers):
            public.append(Public("mesh", f"router{router}_agent__request", writable=True))
            public.append(Public("mesh", f"router{router}_agent__response"))
    blocks = network.block_verilog()
    sources = {f"{name}.v": text for name, text in blocks.items()} | {"mesh.v": network.verilog("mesh")}
    design = Design(top="mesh", sources=sources, public=tuple(public), no_inline=tuple(blocks))
    print(f"seed {seed}")
    result = run(
        build(design),
        "support.system.router_traffic:random_traffic",
        {"cycles": CYCLES, "network": name},
        out_dir=tmp_path,
        seed=seed,
    )
    print(result.value, f"{result.cycles_per_second:.0f} cycles/s")
    assert result.value["cycles"] >= CYCLES
    return result


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("source_same", marks=pytest.mark.full),
        pytest.param("source_weighed", marks=pytest.mark.full),
        "dimension_order_any",
        pytest.param("table_service_level", marks=pytest.mark.full),
        pytest.param("torus", marks=pytest.mark.full),
        pytest.param("west_first", marks=pytest.mark.full),
        pytest.param("odd_even", marks=pytest.mark.full),
        "duato",
        pytest.param("valiant", marks=pytest.mark.full),
        pytest.param("ugal", marks=pytest.mark.full),
        pytest.param("torus_duato", marks=pytest.mark.full),
        pytest.param("torus_ugal", marks=pytest.mark.full),
        pytest.param("hypercube_duato", marks=pytest.mark.full),
        pytest.param("flattened_butterfly_duato", marks=pytest.mark.full),
        pytest.param("flattened_butterfly_ugal", marks=pytest.mark.full),
        pytest.param("dragonfly_ugal", marks=pytest.mark.full),
        pytest.param("everything", marks=pytest.mark.full),
    ],
)
def test_mesh_delivers_everything_and_drains(traffic, tmp_path, name):
    """All nodes send on all VLs, packets of 1 to 12 flits. Receivers stall for hundreds of cycles: see
    `router_traffic.random_traffic`. A seed is given back with LANIKAI_TEST_SEED."""
    network = traffic.NETWORKS[name]
    result = run_traffic(traffic, name, tmp_path)
    # Enough of everything to mean something; a receiver stalls a third of the time, and stops others with it.
    assert result.value["flits"] > CYCLES // 2
    assert result.value["packets"] > 1000
    assert result.value["dropped"] > 50
    # Tables were rewritten under load, senders were told; where there are no agents nobody was.
    assert (result.value["tables"] > 100) == has_tables(network.router)
    assert (result.value["rejects"] > 50) == network.router.management


class NoDateline(TorusRouting):
    """Packets stay on the lower VL of their pair."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.out_vl[0].eq(0)
        return m


@pytest.mark.full
def test_a_torus_without_the_dateline_locks_up(traffic, tmp_path, monkeypatch):
    """The traffic is the same as above. At the latest when all nodes send and none takes anything, it is over."""
    monkeypatch.setitem(ROUTING, "torus", NoDateline)
    with pytest.raises(Exception, match="packets are missing"):
        run_traffic(traffic, "torus", tmp_path)


class AnyTurn(TurnRouting):
    """Every way that leads nearer, on one VL: all turns are made."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        return True, True

    def allow(self, m, x, y):
        return Const(1), Const(1)


class AdaptiveEscape(DuatoRouting):
    """Options on the escape VL: packets wait there by any way."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.option_vl[0].eq(0)
        return m


class OneVl(ValiantRouting):
    """Both phases on the lower VL. At the router on its way the header is told that it has been there."""

    @classmethod
    def rewrites_at(cls, config):
        return range(config.ports)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.out_vl[0].eq(0)
        to, via, here = self.route[:10], self.route[10:], self.position
        if self.in_port:
            m.d.comb += self.new_route.eq(Cat(to, Mux(via == Cat(here.x, here.y), to, via)))
        return m


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "mutant"),
    [("west_first", AnyTurn), ("odd_even", AnyTurn), ("duato", AdaptiveEscape), ("valiant", OneVl)],
)
def test_a_mesh_without_its_rule_locks_up(traffic, tmp_path, monkeypatch, name, mutant):
    """The traffic is that of the sound function, and so are the routers but for the rule.

    All turns are made, the escape VL is adaptive, or one VL serves both phases.
    """
    monkeypatch.setitem(ROUTING, name, mutant)
    with pytest.raises(Exception, match="packets are missing"):
        run_traffic(traffic, name, tmp_path)
