"""Routes between the hosts of a map that cannot deadlock, and the way from old routes to new ones.

Routes go up*/down* (`lanikai.hdl.up_down`): first towards earlier switches of an order, then away. They are those of
kinds of switches. Kinds are ordered, so all switches of a kind stand alike; cables between two of one kind carry no
routes. A circle of channels in the network would be one of channels of kinds. So none in these is none in those.

Old and new routes are in use together while the new ones are given out. They cannot deadlock if their channels together
have no circle, which is checked on the new map. For that the old order is kept as far as it goes: switches that are
still there in their order, new ones behind them. A circle is left over where that order gives no way up to some switch.
Then the old routes that go down and up again in the new order are withdrawn, and packets on them run out, before the
new routes are given out. All others are routes of the new order, the old ones too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lanikai.hdl.network_checks import Channel, find_cycle
from lanikai.hdl.up_down import up_down_order, up_down_tables

from .network_map import Host, MapError, NetworkMap, Switch
from .words import Word, WordFormat

__all__ = ["Pairs", "deadlocks", "order_after", "shortest", "to_withdraw", "up_down_words"]

Pairs = Mapping[tuple[int, int], Word]
"""The word of each pair of hosts, source and destination."""


def _places(network: NetworkMap) -> dict[tuple[int, int], tuple[int, int]]:
    return {
        (kind, port): (entry.kind, 0)
        for kind, row in enumerate(network.rows)
        for port, entry in enumerate(row)
        if isinstance(entry, Switch) and entry.kind != kind
    }


def _joined(network: NetworkMap, kind: int) -> Iterator[int]:
    for entry in network.rows[kind]:
        if isinstance(entry, Switch):
            yield entry.kind


def order_after(network: NetworkMap, old: NetworkMap | None, order: Sequence[int]) -> list[int]:
    """An order of a map's kinds for up*/down* routes: that of an `old` map with its `order` as far as it goes, else a
    new one."""
    fresh = up_down_order(_places(network), len(network.rows), len(network.rows[0]), _homes(network))
    if old is None:
        return fresh
    same = _same(network, old)
    kept = [same[kind] for kind in order if kind in same]
    kept += [kind for kind in fresh if kind not in kept]
    earlier = {kept[0]}
    for kind in kept[1:]:
        if not earlier.intersection(_joined(network, kind)):
            return fresh
        earlier.add(kind)
    return kept


def _homes(network: NetworkMap) -> list[tuple[int, int]]:
    hosts = network.hosts
    return [hosts[node] for node in sorted(hosts)]


def _same(network: NetworkMap, old: NetworkMap) -> dict[int, int]:
    """The kinds of a map by those of an old one that they are.

    They have a host in common, or the same port of one that is found leads to them.
    """
    hosts = network.hosts
    found: dict[int, int] = {}
    for node, (kind, _) in old.hosts.items():
        if node in hosts:
            found.setdefault(kind, hosts[node][0])
    waiting = deque(found)
    while waiting:
        kind = waiting.popleft()
        for was, now in zip(old.rows[kind], network.rows[found[kind]], strict=True):
            if not isinstance(was, Switch) or not isinstance(now, Switch):
                continue
            if was.kind not in found and now.kind not in found.values():
                found[was.kind] = now.kind
                waiting.append(was.kind)
    return found


def up_down_words(network: NetworkMap, order: Sequence[int], form: WordFormat) -> dict[tuple[int, int], Word]:
    """The up*/down* words of all pairs of hosts, by an order of `order_after`.

    Raises MapError if a host is on no way, or a route does not hold a word.
    """
    hosts = network.hosts
    nodes = sorted(hosts)
    tables = up_down_tables(_places(network), len(network.rows), len(network.rows[0]), _homes(network), order)
    found = {}
    for source in nodes:
        for place, destination in enumerate(nodes):
            if source == destination:
                continue
            kind = hosts[source][0]
            word: list[int] = []
            while True:
                port = tables[kind][place]
                if port < 0 or len(word) > form.longest:
                    raise MapError(f"no route holds the way from node {source} to node {destination}")
                word.append(port)
                entry = network.rows[kind][port]
                if not isinstance(entry, Switch):
                    break
                kind = entry.kind
            if not form.fits(tuple(word)):
                raise MapError(f"no route holds the way from node {source} to node {destination}")
            found[source, destination] = tuple(word)
    return found


def _channels(network: NetworkMap, source: int, word: Word) -> list[Channel]:
    """The channels that a word takes from a host on; it may end where there is nothing."""
    hosts = network.hosts
    found: list[Channel] = []
    if source not in hosts:
        return found
    kind = hosts[source][0]
    for port in word:
        entry = network.rows[kind][port]
        if not isinstance(entry, Switch | Host):
            break
        found.append((kind, port, 0))
        if isinstance(entry, Host):
            break
        kind = entry.kind
    return found


def deadlocks(network: NetworkMap, *sets: Pairs) -> list[Channel] | None:
    """A circle of channels that sets of words, used together, could wait for each other in; None if there is none."""
    needs: dict[Channel, set[Channel]] = {}
    for words in sets:
        for (source, _), word in words.items():
            channels = _channels(network, source, word)
            for before, after in pairwise(channels):
                needs.setdefault(before, set()).add(after)
    return find_cycle(needs)


def to_withdraw(network: NetworkMap, order: Sequence[int], old: Pairs, new: Pairs) -> list[tuple[int, int]]:
    """The pairs whose old words must be gone before the new ones are used: none if all together cannot deadlock."""
    if deadlocks(network, old, new) is None:
        return []
    rank = {kind: place for place, kind in enumerate(order)}
    found = []
    for (source, destination), word in old.items():
        kinds = [kind for kind, _, _ in _channels(network, source, word)]
        steps = [rank[b] - rank[a] for a, b in pairwise(kinds)]
        fell = [place for place, step in enumerate(steps) if step >= 0]
        if fell and (0 in steps or any(step < 0 for step in steps[fell[0] :])):
            found.append((source, destination))
    return found


def shortest(network: NetworkMap, start: int) -> dict[int, Word]:
    """The shortest words from a kind of switch to each host, without regard for deadlock: for the mapper's packets."""
    ways: dict[int, Word] = {start: ()}
    found: dict[int, Word] = {}
    waiting = deque([start])
    while waiting:
        kind = waiting.popleft()
        for port, entry in enumerate(network.rows[kind]):
            word = (*ways[kind], port)
            if isinstance(entry, Host):
                found[entry.node] = word
            elif isinstance(entry, Switch) and entry.kind not in ways:
                ways[entry.kind] = word
                waiting.append(entry.kind)
    return found
