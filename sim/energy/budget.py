"""E_packet and L_packet of yum-2006 5.1: what a packet takes on its way, for an adapter's energy budget."""

from __future__ import annotations

from lanikai.hdl.config import ConfigError
from lanikai.hdl.network import Network

from .activity import Activity, activity_of_packets
from .table import ATTOJOULES_PER_PJ, EnergyTable

__all__ = ["ROUTER_CYCLES", "check_budget", "flit_energies_pj", "path_cycles"]

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
