"""Rates of refusal on a 5x5 mesh by the sums alone, for both readings of a link's used bandwidth."""

import random
import re
from statistics import fmean

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.ledger import Reason, RouterLedger
from lanikai.sim.admission.places import RouterPlace
from lanikai.sim.experiments.qos.mix import Mix, mixed_network
from lanikai.sim.experiments.qos.streams import plan_streams
from support.references import ROOT

UNITS = 20
"""A stream of 2% of a link, which has 1020."""
SEEDS = range(3)
NODES = range(25)
PAGE = (ROOT / "docs" / "admission.md").read_text()


def refused_percent(link_sum, *, load):
    """Every node asks for streams of 0.8 x `load` in all, to random others; all in random order."""
    router = RouterConfig(link=LinkConfig(flit_bits=128, vls=16, hop_bits=3), ports=6, management=True)
    network, config = mesh(5, 5, router=router), AdmissionConfig(link_sum=link_sum)
    places = [RouterPlace(network, r) for r in NODES]
    refused = asked = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        ledgers = [RouterLedger(config, router.ports) for _ in NODES]
        asks = [node for node in NODES for _ in range(round(0.8 * load * config.link_units / UNITS))]
        chance.shuffle(asks)
        for source in asks:
            destination = chance.choice([node for node in NODES if node != source])
            (at, in_port), ways = network.nodes[source], []
            while at >= 0:
                hop = places[at].hop(in_port, 0, destination)
                ways.append((ledgers[at], {"in_port": in_port, "out_port": hop.out_port, "units": UNITS}))
                at, in_port = hop.router, hop.in_port
            asked += 1
            if any(ledger.refusal(**way) is not Reason.NONE for ledger, way in ways):
                refused += 1
            else:
                for ledger, way in ways:
                    ledger.add(**way, vl=0, peak=UNITS)
    return 100 * refused / asked


@pytest.mark.parametrize(("link_sum", "percent"), [("each_way", 0), ("both_ways", 27)])
def test_the_page_has_the_rates_of_both_readings(link_sum, percent):
    assert round(refused_percent(link_sum, load=0.7)) == percent


def refused_of_plan(mix, seed):
    """Percent of a mix' streams that are refused if nodes ask one after the other, each for its next stream."""
    network = mixed_network("mesh5x5").network
    places = [RouterPlace(network, r) for r in NODES]
    ledgers = [RouterLedger(mix.admission_config, network.router.ports) for _ in NODES]
    turns = [
        (number, random.Random(f"{seed}{stream.source}{number}").random(), stream)
        for node in plan_streams(mix, nodes=len(NODES), seed=seed)
        for number, stream in enumerate(node)
    ]
    refused = 0
    for *_, stream in sorted(turns, key=lambda turn: turn[:2]):
        (at, in_port), ways = network.nodes[stream.source], []
        while at >= 0:
            hop = places[at].hop(in_port, stream.vl, stream.destination)
            ways.append((ledgers[at], {"in_port": in_port, "out_port": hop.out_port, "units": stream.units}))
            at, in_port = hop.router, hop.in_port
        if any(ledger.refusal(**way) is not Reason.NONE for ledger, way in ways):
            refused += 1
        else:
            for ledger, way in ways:
                ledger.add(**way, vl=0, peak=stream.units)
    return 100 * refused / len(turns)


@pytest.mark.parametrize("load", [0.4, 0.7])
def test_the_page_has_the_sums_of_the_mesh(load):
    header, row = (
        re.search(rf"^\| {beginning} \|(.*)\|$", PAGE, re.M)[1].split("|")
        for beginning in ("load", "5x5 mesh, streams of 2%")
    )
    written = dict(zip(map(float, header), map(float, row), strict=True))
    mix = Mix(load=load, real_time="on_off", stream_units=(20,))
    assert round(fmean(refused_of_plan(mix, seed) for seed in range(3)), 1) == written[load]
