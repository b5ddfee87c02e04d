"""Networks beside a plain model of them: every flit and every credit comes in the same cycle."""

from __future__ import annotations

import random

import pytest
from amaranth import Signal
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import Network, chain, mesh
from lanikai.hdl.router.allocators.allocator import Allocator
from lanikai.hdl.router.transmit import TransmitStage
from lanikai.hdl.vl_arbiter.round_robin import RoundRobinVlArbiter
from support.hdl.recorded_network import by_verilator
from support.network.beside_rtl import differences, in_amaranth, in_verilog
from support.network.plain_network import Load, Shown, run_plain, shapes


def router(ports: int, *, vls: int = 2, routing: str = "source", **fields) -> RouterConfig:
    link = {"flit_bits": 32, "vls": vls, "hop_bits": 3}
    link |= {name: fields.pop(name) for name in ("rate_num", "rate_den", "delay_cycles") if name in fields}
    sizes = {"input_buffer_flits": 4, "output_buffer_flits": 3}
    return RouterConfig(link=LinkConfig(**link), ports=ports, routing=routing, **sizes | fields)


CHAIN = chain(2, router=router(3), node_buffer_flits=5)
CASES = {
    "chain of one VL": chain(3, router=router(3, vls=1, input_buffer_flits=2, output_buffer_flits=2)),
    "chain of three VLs": chain(3, router=router(4, vls=3), nodes=[2, 1, 2]),
    "mesh, source routes": mesh(2, 2, router=router(5, vls=4)),
    "mesh, dimension order": mesh(2, 2, router=router(5, routing="dimension_order", input_buffer_flits=6)),
    "mesh of one VL": mesh(2, 2, router=router(5, vls=1)),
    "slow links, long wires": mesh(
        2, 2, router=router(5, vls=2, rate_num=2, rate_den=7, delay_cycles=3, input_buffer_flits=10)
    ),
}


SEEDS = range(4)
CYCLES = 20_000


def plain(network: Network, seed: int, *, cycles: int, **load) -> Shown:
    print(f"seed {seed}")
    return run_plain(network, random.Random(seed), Load(last_cycle=cycles - 200, **load), cycles=cycles)


def hold(shown: Shown, found) -> None:
    assert (first := next(differences(shown, found), None)) is None, first
    # Packets have come, and unless some were thrown away, every flit.
    assert shown.counts["tails"] > 20
    assert shown.counts["out"] == shown.counts["in"] or shown.dropped


def test_two_routers_do_what_the_model_does():
    shown = plain(CHAIN, 1, cycles=500, astray=0.1)
    hold(shown, in_amaranth(CHAIN, shown))
    assert shown.dropped > 0


def test_a_choice_without_a_model_is_refused():
    for fields, message in (
        ({"vl_arbiter": "fcfs"}, "vl_arbiter = 'fcfs': the plain model has 'round_robin'"),
        ({"allocator": "islip"}, "allocator = 'islip': the plain model has 'separable'"),
        ({"header_lookahead": True}, "header_lookahead = True: the plain model has False"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            shapes(chain(2, router=router(3, **fields)))


def no_turns(monkeypatch):
    """The lowest VL always goes."""
    plain = RoundRobinVlArbiter.pick

    def pick(self, m, requests, tails, grant, advance):
        plain(self, m, requests, tails, grant, Signal(1, name="never"))

    monkeypatch.setattr(RoundRobinVlArbiter, "pick", pick)


def no_sweep(monkeypatch):
    """An output that the first choices leave idle stays idle."""
    plain = Allocator._sweep

    def sweep(self, m, asks, free_inputs, free_outputs):
        return plain(self, m, [ask & 0 for ask in asks], free_inputs, free_outputs)

    monkeypatch.setattr(Allocator, "_sweep", sweep)


def one_credit_fewer(monkeypatch):
    """A transmitter leaves a place of the receiver unused."""
    plain = TransmitStage.__init__

    def fewer(self, config, *, credit_flits):
        plain(self, config, credit_flits=credit_flits - 1)

    monkeypatch.setattr(TransmitStage, "__init__", fewer)


MUTANTS = [no_turns, no_sweep, one_credit_fewer]


@pytest.mark.parametrize(
    "mutate", [pytest.param(one, marks=[] if one is no_turns else pytest.mark.full) for one in MUTANTS]
)
def test_another_router_is_found(mutate, monkeypatch):
    shown = plain(CHAIN, 1, cycles=500, astray=0.1)
    mutate(monkeypatch)
    assert next(differences(shown, in_amaranth(CHAIN, shown)), None) is not None


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_networks_do_what_the_model_does(case, tmp_path):
    """All loads and seeds on one model of Verilator."""
    network, flits = CASES[case], 0
    for seed in SEEDS:
        load = {"send": (1.0, 0.3)[seed % 2], "stall": (0.0, 0.4)[seed // 2], "flits": (12, 1)[seed == 3]}
        shown = plain(network, seed, cycles=CYCLES, **load)
        hold(shown, in_verilog(network, shown, tmp_path, by_verilator()))
        flits += shown.counts["out"]
    print(f"{case}: {flits} flits")
