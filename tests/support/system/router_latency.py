"""One packet at a time through a 4 x 4 mesh, run inside the simulator by `test_router_latency.py`."""

from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.sim.inside import native_api

FLITS = (1, 10, 40)


def network(flit_bits, delay_cycles, ahead):
    """A mesh with small buffers: a stream without a gap needs 6 flits, and 2 more for each register of the wire."""
    link = LinkConfig(flit_bits=flit_bits, hop_bits=3, delay_cycles=delay_cycles)
    depth = 6 + 2 * delay_cycles
    router = RouterConfig(
        link=link, ports=5, input_buffer_flits=depth, output_buffer_flits=2, header_lookahead=ahead
    )
    return mesh(4, 4, router=router, node_buffer_flits=depth)


async def every_path(session):
    """Send a packet of each length from every node to every node, itself included.

    Returns the list of (source, destination, flits, cycles to the head, cycles to the tail), from the cycle in which
    the head is on the first link.
    """
    net = network(session.spec["flit_bits"], session.spec["delay_cycles"], session.spec["ahead"])
    bits = net.router.link.flit_bits
    nodes = range(len(net.nodes))
    signal = {
        (node, end, member): native_api.signal(f"node{node}_{end}__{member}")
        for node in nodes
        for end in ("rx", "tx")
        for member in ("payload", "valid", "credit_vl", "credit_valid")
    }
    rows = []
    for source in nodes:
        for destination in nodes:
            route = net.source_route(source, destination)
            for flits in FLITS:
                seen, cycle = [], 0
                while len(seen) < flits:
                    assert cycle < 400, f"{source} to {destination}: {len(seen)} of {flits} flits"
                    if cycle < flits:
                        word = route << 8 if cycle == 0 else cycle
                        flags = (cycle == 0) | (cycle == flits - 1) << 1
                        signal[source, "rx", "payload"].set(word | flags << bits + net.router.link.vl_bits)
                    signal[source, "rx", "valid"].set(cycle < flits)
                    # The receiver gives its credit back at once.
                    valid = signal[destination, "tx", "valid"].get()
                    signal[destination, "tx", "credit_valid"].set(valid)
                    if valid:
                        word = signal[destination, "tx", "payload"].get() & (1 << bits) - 1
                        assert word == (len(seen) if seen else 0), "route used up, flits in order"
                        seen.append(cycle)
                    cycle += 1
                    await session.clock.sleep(1)
                signal[source, "rx", "valid"].set(0)
                signal[destination, "tx", "credit_valid"].set(0)
                rows.append((source, destination, flits, seen[0], seen[-1]))
                # The last credits go home.
                await session.clock.sleep(12)
                assert not native_api.signal("activity").get()
    return {"rows": rows}
