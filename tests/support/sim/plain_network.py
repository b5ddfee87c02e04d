"""A plain Python network that follows the rules of the routers, for the mapper: no simulator, no time.

A switch sends a packet to the port that its next hop names and takes the hop off; zeros come in from above. A hop that
names a port which does not exist, or which leads nowhere, ends the packet. A port may be the one that the packet came
by. A host takes whatever comes.
"""

from __future__ import annotations

from random import Random

from lanikai.sim.host.am.mapper.network_map import Host, NetworkMap
from lanikai.sim.host.am.mapper.words import WordFormat

MOST_STEPS = 200
"""Switches that a packet may pass before it counts as one that never leaves the network."""


class PlainNetwork:
    """Switches and hosts: `ends` has the far end of each live place (router, port), another place or a `Host`."""

    def __init__(self, ends, *, routers, ports, hop_bits=4, max_hops=12):
        self.ends, self.routers, self.ports = dict(ends), routers, ports
        self.form = WordFormat(ports, hop_bits, max_hops)
        self.homes = {end.node: place for place, end in self.ends.items() if isinstance(end, Host)}
        self.deaf = set()
        self.longest = 0

    def walk(self, node, route):
        """Where a packet of a host ends: its host and the route that is left, or (None, route)."""
        if self.ends.get(self.homes[node]) != Host(node):
            return None, route
        router, bits = self.homes[node][0], self.form.hop_bits
        for step in range(MOST_STEPS):
            port, route = route & (1 << bits) - 1, route >> bits
            end = self.ends.get((router, port)) if port < self.ports else None
            if end is None:
                self.longest = max(self.longest, step)
                return None, route
            if isinstance(end, Host):
                return (None if end.node in self.deaf else end.node), route
            router = end[0]
        raise AssertionError("a packet that never leaves the network")

    def cut(self, place):
        """Take away the cable at a place. Returns its ends, for `join`."""
        end = self.ends.pop(place)
        if not isinstance(end, Host):
            self.ends.pop(end, None)
        return place, end

    def join(self, place, end):
        """Put a cable in: to another place, or to a `Host`."""
        self.ends[place] = end
        if isinstance(end, Host):
            self.homes[end.node] = place
        else:
            self.ends[end] = place

    def kill(self, router):
        """Take away all cables of a switch."""
        for place in [place for place in self.ends if place[0] == router]:
            if place in self.ends:
                self.cut(place)

    def map(self, node=0):
        """The map that a mapper on a node should find."""
        ends = {
            place: end
            for place, end in self.ends.items()
            if not (isinstance(end, Host) and end.node in self.deaf)
        }
        return NetworkMap.of_ends(ends, self.routers, self.ports, self.homes[node])


class PlainProber:
    """A `Prober` on a plain network, which loses each packet with probability `loss`, and asks `attempts` times."""

    def __init__(self, network, node=0, *, loss=0.0, attempts=1, random=None):
        self.network, self.node, self.format = network, node, network.form
        self.loss, self.attempts, self.random = loss, attempts, random or Random(0)
        self.asked = 0

    async def ask(self, probes):
        return [self._try(probe) for probe in probes]

    def _try(self, probe):
        form = self.network.form
        for _ in range(self.attempts):
            self.asked += 1
            if self.loss and self.random.random() < self.loss:
                continue
            node, left = self.network.walk(self.node, form.route(probe.word))
            if node is None or not form.at_end(left):
                continue
            if node == self.node:
                return node
            if self.loss and self.random.random() < self.loss:
                continue
            home, left = self.network.walk(node, form.route(probe.back))
            if home == self.node and form.at_end(left):
                return node
        return None


def run(coroutine):
    """The value of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the coroutine waits")


def random_network(random, *, switches, hosts, extra, ports=8, loops=0.05, **form):
    """A connected network of random cables: a tree of switches, `extra` further cables, `hosts` hosts.

    A further cable is a loop at one switch with probability `loops`; else its ends are any two switches, so that some
    are parallel.
    """
    free = {router: random.sample(range(ports), ports) for router in range(switches)}
    ends = {}

    def join(a, b):
        here, there = (a, free[a].pop()), (b, free[b].pop())
        ends[here], ends[there] = there, here

    for router in range(1, switches):
        join(router, random.choice([other for other in range(router) if free[other]]))
    for node in range(hosts):
        able = [router for router in free if free[router]]
        if not able:
            break
        router = random.choice(able)
        ends[router, free[router].pop()] = Host(node)
    for _ in range(extra):
        if random.random() < loops:
            able = [router for router in free if len(free[router]) > 1]
            if able:
                router = random.choice(able)
                join(router, router)
            continue
        able = [router for router in free if free[router]]
        if len(able) > 1:
            join(*random.sample(able, 2))
    return PlainNetwork(ends, routers=switches, ports=ports, **form)


def same_ports_network(random, *, switches, hosts, cables, ports=8):
    """A network made to confuse: every cable joins ports of the same number, drawn so that low numbers are frequent."""
    free = {router: set(range(ports)) for router in range(switches)}
    ends = {}

    def join(a, b):
        both = sorted(free[a] & free[b])
        if a != b and both:
            port = random.choice(both[:3])
            ends[a, port], ends[b, port] = (b, port), (a, port)
            free[a].remove(port), free[b].remove(port)

    for router in range(1, switches):
        join(router, random.randrange(router))
    for _ in range(cables):
        join(random.randrange(switches), random.randrange(switches))
    for node in range(hosts):
        able = [router for router in free if free[router]]
        router = random.choice(able)
        port = min(free[router])
        free[router].remove(port)
        ends[router, port] = Host(node)
    return PlainNetwork(ends, routers=switches, ports=ports)


def regular_tree(*, leaves, middles, roots, hosts):
    """A tree of three levels, each switch joined to all of the next one by the same ports: middles and roots are
    twins."""
    ends = {}

    def join(a, b):
        ends[a], ends[b] = b, a

    for leaf in range(leaves):
        for middle in range(middles):
            join((leaf, 7 - middle), (leaves + middle, leaf))
        for host in range(hosts):
            ends[leaf, host] = Host(leaf * hosts + host)
    for middle in range(middles):
        for root in range(roots):
            join((leaves + middle, 7 - root), (leaves + middles + root, middle))
    return PlainNetwork(ends, routers=leaves + middles + roots, ports=8)
