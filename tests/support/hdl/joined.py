"""The routers of a network, joined as it says, in one component for Amaranth's simulator; and packets between nodes."""

from amaranth import Module
from amaranth.lib import wiring
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.routing import routing_class


class Joined(wiring.Component):
    """The routers of a network, joined as it says. `ends`: the links of each node."""

    def __init__(self, network):
        super().__init__({})
        self.network = network
        self.routers = [
            Router(network.router, credit_flits=network.credit_flits[r]) for r in range(network.routers)
        ]
        self.ends = [(self.routers[r].rx[p], self.routers[r].tx[p]) for r, p in network.nodes]

    def elaborate(self, platform):
        m = Module()
        for number, router in enumerate(self.routers):
            m.submodules[f"router_{number}"] = router
            m.d.comb += router.connected.eq(self.network.connected(number))
            if routing_class(self.network.router).position_layout is not None:
                m.d.comb += router.position.as_value().eq(self.network.position(number))
        for (router, port), (there, other) in self.network.neighbours.items():
            wiring.connect(m, self.routers[router].tx[port], self.routers[there].rx[other])
        return m


def packet(traffic, network, number, source, destination, vl, flits, start=0, target_bits=10):
    """A packet between two nodes, which comes out on the VL that the twin says."""
    router, port = network.nodes[source]
    end = network.channels(router, destination, in_port=port, vl=vl)[-1]
    return traffic.Packet(
        number=number,
        source=source,
        hops=[],
        target=network.source_route(source, destination),
        target_bits=target_bits,
        end=destination,
        vl=vl,
        out_vls=(end[2],),
        flits=flits,
        start=start,
    )
