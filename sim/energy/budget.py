"""E_packet and L_packet of yum-2006 5.1: what a packet takes on its way, for an adapter's energy budget."""

from __future__ import annotations

from lanikai.hdl.config import ConfigError
from lanikai.hdl.hca.injection.policy import SetupKind
from lanikai.hdl.network import Network

from .activity import Activity, activity_of_packets
from .table import ATTOJOULES_PER_PJ, EnergyTable

__all__ = [
    "ROUTER_CYCLES",
    "adapter_words",
    "check_budget",
    "flit_energies_pj",
    "hop_prices_pj",
    "mean_flit_pj",
    "path_cycles",
]

ROUTER_CYCLES = 5
"""S: cycles of a router and its link (yum-2006 6.1)."""


def flit_energies_pj(
    network: Network, energies: EnergyTable, *, node: int, packet_flits: int
) -> dict[int, int]:
    """The energy of a flit from `node` to each other node, pJ, rounded up: E_router (D + 1) + E_link D.

    The decision of a packet is spread over its `packet_flits`. So no packet takes more than its flits' sum.
    """
    flit_bits = network.router.link.flit_bits
    found = {}
    for there in range(len(network.nodes)):
        if there != node:
            activity = Activity.total(activity_of_packets(network, [(node, there, packet_flits)]))
            whole = activity.attojoules(energies, flit_bits=flit_bits)
            found[there] = -(-whole // (packet_flits * ATTOJOULES_PER_PJ))
    return found


def hop_prices_pj(network: Network, energies: EnergyTable, *, packet_flits: int) -> tuple[int, int]:
    """E_router and E_link: what a flit takes in a router, and on a link between routers; pJ, each rounded up.

    The decision of a packet is spread over its `packet_flits`.
    """
    passed = Activity(
        buffer_writes=2 * packet_flits,
        buffer_reads=2 * packet_flits,
        arbitrations=3 * packet_flits + 1,
        crossbar_flits=packet_flits,
    )
    flit_bits = network.router.link.flit_bits
    router = passed.attojoules(energies, flit_bits=flit_bits)
    link = Activity(link_flits=1).attojoules(energies, flit_bits=flit_bits)
    return -(-router // (packet_flits * ATTOJOULES_PER_PJ)), -(-link // ATTOJOULES_PER_PJ)


def mean_flit_pj(network: Network, energies: EnergyTable, *, packet_flits: int) -> float:
    """The energy that a flit takes from source to destination, mean over all pairs of nodes, pJ."""
    nodes = range(len(network.nodes))
    pairs = [(here, there, packet_flits) for here in nodes for there in nodes if here != there]
    activity = Activity.total(activity_of_packets(network, pairs))
    whole = activity.attojoules(energies, flit_bits=network.router.link.flit_bits)
    return whole / (ATTOJOULES_PER_PJ * packet_flits * len(pairs))


def adapter_words(
    network: Network,
    energies: EnergyTable,
    *,
    node: int,
    budget_pj: int,
    hold_cycles: int,
    classes: int,
    packet_flits: int,
) -> list[tuple[int, int, int]]:
    """Words of set-up of an adapter's energy budget: (`SetupKind`, node, value).

    - `budget_pj`: the budget. `classes`: a bit for each traffic class that is held to it.
    - `hold_cycles`: L_packet of a packet of `packet_flits` to the nearest node. W is what is missing to it. So no
      packet's energy comes back sooner, and what begins in any so many cycles takes at most the budget.

    Raises ConfigError for a budget that a packet never fits, or a time shorter than the nearest way.
    """
    prices = flit_energies_pj(network, energies, node=node, packet_flits=packet_flits)
    check_budget(budget_pj, prices, packet_flits=packet_flits)
    nearest = min(path_cycles(network, node=node).values()) + packet_flits
    if hold_cycles < nearest:
        raise ConfigError(f"hold_cycles = {hold_cycles}: at least {nearest}, L_packet to the nearest node")
    ways = path_cycles(network, node=node, wait_cycles=hold_cycles - nearest)
    return [
        *((SetupKind.FLIT_ENERGY.value, there, price) for there, price in prices.items()),
        *((SetupKind.PATH_CYCLES.value, there, cycles) for there, cycles in ways.items()),
        (SetupKind.POWER_BUDGET.value, 0, budget_pj),
        (SetupKind.POWER_CLASSES.value, 0, classes),
    ]


def path_cycles(network: Network, *, node: int, wait_cycles: int = 0) -> dict[int, int]:
    """L_packet without the packet's flits, to each other node: ((D + 1) S - 1) + W.

    `wait_cycles`: W, the wait in the adapter.
    """
    return {
        there: len(network.path(node, there)) * ROUTER_CYCLES - 1 + wait_cycles
        for there in range(len(network.nodes))
        if there != node
    }


def check_budget(budget_pj: int, energies_pj: dict[int, int], *, packet_flits: int) -> None:
    """Raises ConfigError if a packet of `packet_flits` never fits the empty budget: it would be refused each time."""
    there, energy = max(energies_pj.items(), key=lambda item: item[1])
    if energy * packet_flits > budget_pj:
        raise ConfigError(
            f"budget = {budget_pj} pJ: a packet of {packet_flits} flits to node {there} takes "
            f"{energy * packet_flits} pJ, and would never begin"
        )
