"""Discovery: the map of an unknown network, by probes alone.

No conclusion rests on a way home that happens to work. Every one rests on a host: it has one cable, so a way that ends
at it shows which switch came last. By that alone follow, one from the other:

- *A switch with a host.* A place of whose ports one ends at a host is the switch of that host.
- *A test of a switch.* It is a word and a host: the word leads there from this switch and from no other. For a switch
  with a host it is the host's port.
- *The other end of a port.* Port p of S leads to port x, or to one beside it: the way p, x and on by the test of S ends
  at the test's host. The set of all such x is known after one probe each. It is empty if and only if p leads to no
  switch.
- *A switch without a host.* Say x leads from T to S, and from no other switch to S. Then x and on by the test of S is a
  test of T. How many switches have a port x that leads to S is counted by the ports of S.

Where that count leaves it open which of several switches a place is, `kinds` goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .facts import Fact, Leads, Not, longest
from .network_map import BEYOND, Entry, Host, MapError, Switch
from .prober import Probe, Prober
from .words import Word

__all__ = ["Found", "Search"]


@dataclass
class Found:
    """A switch that has been found.

    - `access`: the way from the mapper's switch to it. `home`: the way from it to the mapper.
    - `tests`: a place that passes all of them is this switch, or one of its kind. The first one is of a host that it
      leads to.
    - `alone`: it is known to be alone in its kind.
    - `row`: the far ends that are known; a kind is a number of `Search.switches`.
    - `open`: ports that lead to a switch which is not told apart from others yet, with the ports that lead back.
      `was_open`: those whose kind is being looked for.
    """

    access: Word
    home: Word
    tests: list[Fact]
    alone: bool = True
    row: dict[int, Entry] = field(default_factory=dict)
    open: dict[int, tuple[int, ...]] = field(default_factory=dict)
    was_open: dict[int, tuple[int, ...]] = field(default_factory=dict)


class Search:
    """A search of one network with a `Prober`; `discover` makes a map of it.

    - `switches`: those found, the mapper's own first.
    - `asked`: probes so far.
    - `cut`: probes that a route could not hold.
    - `merging`: routes are too short to tell all apart without merging places (`kinds`).
    - `shortened`: a shorter way to a switch was found.
    """

    def __init__(self, prober: Prober) -> None:
        self.prober, self.form = prober, prober.format
        self.switches: list[Found] = []
        self.hosts: dict[int, tuple[int, int]] = {}
        self.asked = self.cut = 0
        self.merging = self.shortened = False
        self._known: dict[tuple[Word, Word], int | None] = {}
        self._waiting: list[int] = []

    async def ask(self, probes: Sequence[tuple[Word, Word]]) -> list[int | None]:
        """The hosts where the ways end, each with its way back; None for silence, and for what no route holds."""
        fit = [self.form.fits(word) and self.form.fits(back) for word, back in probes]
        self.cut += fit.count(False)
        fresh = dict.fromkeys(
            one for one, fits in zip(probes, fit, strict=True) if fits and one not in self._known
        )
        self.asked += len(fresh)
        answers = await self.prober.ask([Probe(word, back) for word, back in fresh]) if fresh else []
        self._known.update(zip(fresh, answers, strict=True))
        return [self._known.get(one) for one in probes]

    def opened(self) -> list[tuple[int, int]]:
        """All open ports."""
        return [(number, port) for number, one in enumerate(self.switches) for port in one.open]

    async def holds(self, access: Word, tests: Sequence[Fact]) -> bool:
        """Whether the place at the end of a way certainly passes all tests."""
        return (await self.passing([access], tests)) == [True]

    async def passing(self, ways: Sequence[Word], tests: Sequence[Fact]) -> list[bool | None]:
        """For each way, whether the place at its end passes all tests; None if no route is long enough to tell."""
        passed: list[bool | None] = [True] * len(ways)
        for test in tests:
            left = [number for number, yet in enumerate(passed) if yet is not False]
            found = await self._true([ways[number] for number in left], test)
            for number, yes in zip(left, found, strict=True):
                passed[number] = False if yes is False else passed[number] and yes
        return passed

    async def _true(self, ways: Sequence[Word], fact: Fact) -> list[bool | None]:
        """For each way, whether a fact is true of the place at its end; None as `passing`."""
        if isinstance(fact, Not):
            return [None if yes is None else not yes for yes in await self.passing(ways, fact.facts)]
        back = self.home_of(fact.host)
        probes = [(way + fact.word, back) for way in ways]
        fit = [self.form.fits(word) and self.form.fits(back) for word, back in probes]
        answers = await self.ask(probes)
        return [answer == fact.host if fits else None for answer, fits in zip(answers, fit, strict=True)]

    def home_of(self, host: int) -> Word:
        """The way from a known host's switch to the mapper."""
        return self.switches[self.hosts[host][0]].home

    async def begin(self) -> None:
        """Find the mapper's own port: a packet that leaves its switch there comes home."""
        ports = range(self.form.ports)
        node = self.prober.node
        answers = await self.ask([((port,), ()) for port in ports])
        own = [port for port in ports if answers[port] == node]
        if len(own) != 1:
            raise MapError(f"node {node}: {len(own)} ports of its switch lead back to it, not one")
        self._add(Found((), (own[0],), [Leads((own[0],), node)]))
        self._host(0, own[0], node)

    def _add(self, switch: Found) -> int:
        self.switches.append(switch)
        self._waiting.append(len(self.switches) - 1)
        return len(self.switches) - 1

    def _host(self, switch: int, port: int, node: int) -> None:
        if self.hosts.setdefault(node, (switch, port)) != (switch, port):
            raise MapError(f"node {node} is at {self.hosts[node]} and at {(switch, port)}")
        self.switches[switch].row[port] = Host(node)

    async def _explore(self, number: int) -> None:
        """Find the far end of every port of a switch."""
        here = self.switches[number]
        unknown = [port for port in range(self.form.ports) if port not in here.row]
        answers = await self.ask([((*here.access, port), here.home) for port in unknown])
        for port, node in zip(unknown, answers, strict=True):
            if node is not None:
                self._host(number, port, node)
        unknown = [port for port in unknown if port not in here.row]
        for port, back in zip(unknown, await self.ends(number, unknown), strict=True):
            if back:
                here.open[port] = back
        await self.identify([(number, port) for port in here.open])

    async def identify(self, ends: Sequence[tuple[int, int]]) -> None:
        """Say which switches open ports lead to, as far as it can be said: each may help with the others."""
        left, before = list(ends), 0
        while left and len(left) != before:
            before = len(left)
            for number, port in left:
                if port in self.switches[number].open:
                    await self._identify(number, port)
            left = [(number, port) for number, port in left if port in self.switches[number].open]

    async def ends(self, number: int, ports: Sequence[int]) -> list[tuple[int, ...]]:
        """For each port of a switch with one test: the ports at the far end that lead back. Empty for none.

        A port whose probes no route holds is noted as `BEYOND`.
        """
        here, far = self.switches[number], range(self.form.ports)
        ways = [(*here.access, port, x) for port in ports for x in far]
        passed = await self.passing(ways, here.tests)
        rows = [passed[first : first + len(far)] for first in range(0, len(passed), len(far))]
        found = [() if None in row else tuple(x for x in far if row[x]) for row in rows]
        for port, row, back in zip(ports, rows, found, strict=True):
            if not back:
                here.row[port] = await self.far(here.access, here.home, port) if None in row else None
        return found

    async def far(self, access: Word, home: Word, port: int) -> Entry:
        """The far end of a port of a place, where no route is long enough for tests: by a host at it that answers.

        Whatever way the answer comes home, it shows that the port leads to the switch of that host. Switches between
        are found from there once more, with shorter tests.
        """
        far = range(self.form.ports)
        ends = [(x, y) for x in far for y in far]
        answers = await self.ask([((*access, port, y), (x, *home)) for x, y in ends])
        for (x, y), node in zip(ends, answers, strict=True):
            if node is not None:
                return Switch(self._switch_of(node, y, (*access, port), (x, *home)))
        return BEYOND

    def _switch_of(self, node: int, port: int, access: Word, home: Word) -> int:
        """The switch of a host, known or new."""
        if node in self.hosts:
            number, own = self.hosts[node]
            if own != port:
                raise MapError(f"node {node} is at port {own} and at port {port}")
            return number
        number = self._add(Found(access, home, [Leads((port,), node)]))
        self._host(number, port, node)
        return number

    def _known_ends(self, number: int) -> dict[int, tuple[int, ...]]:
        """For each port of a switch that leads to a switch: the far ports that lead back."""
        here = self.switches[number]
        found = dict(here.open)
        for port, entry in here.row.items():
            if isinstance(entry, Switch):
                row = self.switches[entry.kind].row
                found[port] = tuple(sorted(x for x, back in row.items() if back == Switch(number)))
        return found

    def _tests_by(self, number: int, port: int) -> list[Fact]:
        """Tests of the switch behind an open port; none if the count leaves room for more than one such switch.

        The first says that a port of it leads to `number`. Others say that it is none of the known switches of which
        that is true, too.
        """
        here = self.switches[number]
        ends = self._known_ends(number)
        found: list[Fact] = []
        for x in ends[port]:
            like = [there for there, back in ends.items() if x in back]
            same = [there for there in like if there in here.open]
            if any(ends[there] != ends[port] for there in same) or len(same) != len(ends[port]):
                continue
            tests = [test.behind(x) for test in here.tests]
            others = {entry.kind for there in like if isinstance(entry := here.row.get(there), Switch)}
            tests += [Not(tuple(self.switches[other].tests)) for other in sorted(others)]
            if not found or longest(tests) < longest(found):
                found = tests
        return found if len(here.access) + 1 + longest(found) <= self.form.longest else []

    async def _identify(self, number: int, port: int) -> None:
        """Say which switch an open port leads to: one that is known, a new one, or leave it open."""
        here = self.switches[number]
        back = here.open[port]
        access, home = (*here.access, port), (back[0], *here.home)
        there = await self.by_host(access, home, back)
        if there is None:
            there = await self.known(access, back, number)
        tests = self._tests_by(number, port)
        if there is None:
            if not tests:
                return
            there = self._seen_from_afar(number, tests)
            if there is None:
                there = self._add(Found(access, home, tests))
        elif there in self._waiting:
            # Not explored yet: shorter ways and tests reach further.
            other = self.switches[there]
            if len(access) < len(other.access):
                other.access, other.home = access, home
            if tests and longest(tests) < longest(other.tests):
                other.tests = tests
        self.join(number, port, there)

    def _seen_from_afar(self, number: int, tests: list[Fact]) -> int | None:
        """A known switch that `tests`, by a port that leads to `number`, are true of, since its port leads there.

        It was explored with tests that were too long for some of its ports: these are open again.
        """
        first = tests[0]
        assert isinstance(first, Leads)
        back = self.switches[number].row.values()
        for there, one in enumerate(self.switches):
            if one.alone and one.row.get(first.word[0]) == Switch(number) and Switch(there) not in back:
                one.tests = tests
                one.row = {port: entry for port, entry in one.row.items() if entry != BEYOND}
                if there not in self._waiting:
                    self._waiting.append(there)
                return there
        return None

    def join(self, number: int, port: int, there: int) -> None:
        """Note that an open port leads to a switch, and what follows for that one's ports."""
        here, other = self.switches[number], self.switches[there]
        for x in here.open.pop(port):
            if other.row.setdefault(x, Switch(number)) != Switch(number):
                raise MapError(f"port {x} of switch {there} leads to two switches")
            other.open.pop(x, None)
        here.row[port] = Switch(there)

    async def known(self, access: Word, back: Sequence[int] = (), before: int | None = None) -> int | None:
        """The switch without a host, of those alone in their kind, that is at the end of a way.

        `back`: its ports that lead back, to the switch `before`.
        """
        for number, one in enumerate(self.switches):
            free = all(one.row.get(x, Switch(before or 0)) == Switch(before or 0) for x in back)
            hostless = one.alone and one.tests[0].hops > 1
            if free and hostless and await self.holds(access, one.tests):
                return number
        return None

    @property
    def exploring(self) -> bool:
        """Whether switches wait to be explored."""
        return bool(self._waiting)

    async def go_on(self) -> None:
        """Explore the nearest switch that waits. Raises MapError if the network changes meanwhile."""
        await self.identify(self.opened())
        nearest = min(self._waiting, key=lambda number: (len(self.switches[number].access), number))
        self._waiting.remove(nearest)
        await self._explore(nearest)

    def shorten(self, number: int, access: Word, home: Word) -> None:
        """Take over a way to and from a switch if it is shorter."""
        one = self.switches[number]
        if len(access) < len(one.access):
            one.access, one.home = access, home
            self.shortened = True

    def add_kind(self, access: Word, home: Word, tests: list[Fact], row: dict[int, Entry]) -> None:
        """Add a kind of switch of which all is known."""
        self.switches.append(Found(access, home, tests, False, row))

    async def by_host(self, access: Word, home: Word, back: Sequence[int] = ()) -> int | None:
        """The switch at the end of a way, known or new, by the first host that it has; None if it has none.

        `back`: its ports that are known to lead elsewhere.
        """
        for x in range(self.form.ports):
            if x in back:
                continue
            (node,) = await self.ask([((*access, x), home)])
            if node is None:
                continue
            return self._switch_of(node, x, access, home)
        return None
