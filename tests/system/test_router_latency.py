"""Zero-load latency of every path of a 4 x 4 mesh, on Verilator."""

import pytest
from lanikai.sim.build.model import Design, Public, build
from lanikai.sim.run import run

STAGES = 5
MEMBERS = ("payload", "valid", "credit_vl", "credit_valid")


@pytest.fixture
def latency():
    """The module with the network and the coroutine, importable in the simulator's process too."""
    from support.system import router_latency

    return router_latency


@pytest.mark.parametrize(
    ("flit_bits", "delay", "ahead"),
    [
        (32, 0, False),
        pytest.param(128, 1, True, marks=pytest.mark.full),
        pytest.param(64, 0, False, marks=pytest.mark.full),
        pytest.param(64, 0, True, marks=pytest.mark.full),
    ],
)
def test_every_path_takes_what_the_formula_says(latency, tmp_path, flit_bits, delay, ahead):
    """The tail comes after ((D + 1) S - 1) + N cycles, the head after (D + 1) S.

    S is 5 and the wire's registers. D is the number of hops between D + 1 routers, N that of flits: [router] of
    published.toml, with nothing to wait for.
    """
    network = latency.network(flit_bits, delay, ahead)
    public = [Public("mesh", "activity")]
    for node in range(16):
        for end, inputs in (("rx", ("payload", "valid")), ("tx", ("credit_vl", "credit_valid"))):
            public += [
                Public("mesh", f"node{node}_{end}__{name}", writable=name in inputs) for name in MEMBERS
            ]
    blocks = network.block_verilog()
    sources = {f"{name}.v": text for name, text in blocks.items()} | {"mesh.v": network.verilog("mesh")}
    design = Design(top="mesh", sources=sources, public=tuple(public), no_inline=tuple(blocks))
    spec = {"flit_bits": flit_bits, "delay_cycles": delay, "ahead": ahead}
    result = run(build(design), "support.system.router_latency:every_path", spec, out_dir=tmp_path, seed=1)
    rows = result.value["rows"]
    assert len(rows) == 16 * 16 * len(latency.FLITS)
    step = STAGES + delay
    for source, destination, flits, head, tail in rows:
        routers = 1 + abs(source % 4 - destination % 4) + abs(source // 4 - destination // 4)
        assert (head, tail) == (routers * step, routers * step - 1 + flits), (
            f"{source} to {destination}, {flits}"
        )
