"""Forwarding tables of a network's routers, which are written when a simulation starts (routing `table`)."""

from __future__ import annotations

from lanikai.hdl.network import Network
from lanikai.hdl.router.routing import routing_class

from ..inside.clock import Clock
from ..models.router_agent import RouterAgent

__all__ = ["needs_tables", "write_forwarding_tables"]


def needs_tables(network: Network) -> bool:
    """Whether the routers go by tables that have to be written: their agents' ports are open then."""
    return routing_class(network.router).uses_table


async def write_forwarding_tables(clock: Clock, network: Network, *, top: str, composed: bool) -> None:
    """Write every router's table, if the routers go by one: all at once, two accesses a node.

    `top`: the top module's name. `composed`: routers are instances of their own.
    """
    if not needs_tables(network):
        return
    done, left = clock.flag(), [network.routers]

    async def write(router: int) -> None:
        instance = f"{top}.network.router{router}" if composed else ""
        agent = RouterAgent(clock, network.router, router, instance=instance)
        await agent.write_forwarding_table(network.forwarding_table(router))
        left[0] -= 1
        if not left[0]:
            done.set()

    for router in range(network.routers):
        clock.spawn(write(router), f"forwarding table {router}")
    await done.wait()
