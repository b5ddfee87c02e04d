"""The activity of routers and adapters from what passes their links and buses alone: the second way to the same counts.

It takes nothing from inside of a router or an adapter. Each event, and what it follows from:

| event | seen as |
|---|---|
| a flit is written into an input buffer | a flit comes in on the link |
| it is read, and crosses into the output buffer | its credit goes back on that link |
| it is read from the output buffer | a flit goes out on a link |
| decisions of a crossbar's input and output | that credit, one each |
| a decision of a link | a flit goes out |
| a packet's output VL | a tail goes out |
| a beat of an adapter's DMA | a beat on its bus |
| a message enters a doorbell queue, and leaves it | a tail that ends a message goes out |

A flit that is thrown away gives its credit back and crosses nowhere. So this is for networks that drop nothing. Flits
of a router's management port pass no link and are not seen. While flits are under way a credit comes a little after its
flit has crossed. When nothing is under way the counts are equal exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanikai.hdl.network import Network

from ..inside import native_api
from .activity import Activity, router_links
from .adapter import AdapterActivity

__all__ = ["FlitMeter", "LinkTally", "adapter_activity", "router_activity"]

_MASK = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class LinkTally:
    """Flits, tails, tails that end a message, and credits of the link end at one port."""

    flits: int
    tails: int
    lasts: int
    credits: int

    def __sub__(self, before: LinkTally) -> LinkTally:
        """All that has passed since `before`."""
        return LinkTally(
            **{name: (value - getattr(before, name)) & _MASK for name, value in vars(self).items()}
        )


def router_activity(
    received: Sequence[LinkTally], sent: Sequence[LinkTally], *, to_routers: Sequence[int]
) -> Activity:
    """The activity of a router from its ports' links. `to_routers`: the ports whose link leads to another router."""
    came = sum(one.flits for one in received)
    crossed = sum(one.credits for one in received)
    left = sum(one.flits for one in sent)
    return Activity(
        buffer_writes=came + crossed,
        buffer_reads=crossed + left,
        arbitrations=2 * crossed + left + sum(one.tails for one in sent),
        crossbar_flits=crossed,
        link_flits=sum(sent[port].flits for port in to_routers),
    )


def adapter_activity(received: LinkTally, sent: LinkTally, *, beats: int) -> AdapterActivity:
    """The activity of an adapter from its link and the beats on its bus."""
    return AdapterActivity(
        buffer_writes=received.flits + sent.flits,
        buffer_reads=received.credits + sent.flits,
        arbitrations=sent.flits,
        link_flits=received.flits + sent.flits,
        bus_beats=beats,
        queue_writes=sent.lasts,
        queue_reads=sent.lasts,
    )


class FlitMeter:
    """Counts of what passes the links of all routers, and the links and buses of all adapters (`FlitTally`).

    `top`: the instance above network and nodes. A count may go round once between two readings.
    """

    def __init__(self, network: Network, *, top: str) -> None:
        self._links = [router_links(network, router) for router in range(network.routers)]
        self._ports, self._nodes = range(network.router.ports), range(len(network.nodes))
        self._top = top
        self._routers = [self._router(router) for router in range(network.routers)]
        self._adapters = [self._adapter(node) for node in self._nodes]

    def read(self) -> tuple[tuple[Activity, ...], tuple[AdapterActivity, ...]]:
        """The activity of each router and of each adapter since the last call, or since the meter was made."""
        routers, adapters = [], []
        for router, (received, sent) in enumerate(self._routers):
            now = self._routers[router] = self._router(router)
            routers.append(
                router_activity(
                    [new - old for new, old in zip(now[0], received, strict=True)],
                    [new - old for new, old in zip(now[1], sent, strict=True)],
                    to_routers=self._links[router],
                )
            )
        for node, (came, went, beats) in enumerate(self._adapters):
            here = self._adapters[node] = self._adapter(node)
            adapters.append(adapter_activity(here[0] - came, here[1] - went, beats=(here[2] - beats) & _MASK))
        return tuple(routers), tuple(adapters)

    def _tally(self, scope: str, end: str) -> LinkTally:
        names = ("flits", "tails", "lasts", "credits")
        return LinkTally(**{name: native_api.signal(f"tally_{end}_{name}", scope).get() for name in names})

    def _router(self, router: int) -> tuple[list[LinkTally], list[LinkTally]]:
        scope = f"{self._top}.network.router{router}"
        received, sent = (
            [self._tally(scope, f"{end}_{port}") for port in self._ports] for end in ("rx", "tx")
        )
        return received, sent

    def _adapter(self, node: int) -> tuple[LinkTally, LinkTally, int]:
        scope = f"{self._top}.node{node}.hca"
        beats = native_api.signal("tally_bus_beats", scope).get()
        return self._tally(scope, "rx"), self._tally(scope, "tx"), beats
