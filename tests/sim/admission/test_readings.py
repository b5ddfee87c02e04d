"""Rates of refusal on a 5x5 mesh by the sums alone, for both readings of a link's used bandwidth."""

import random

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.ledger import Reason, RouterLedger
from lanikai.sim.admission.places import RouterPlace

UNITS = 20
"""A stream of 2% of a link, which has 1020."""
SEEDS = range(3)
NODES = range(25)


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
