"""Switches that the search has left open, told apart as far as routes can: the kinds of a map.

Each open port is looked at on its own, as if its switch were a new one. Its own ports lead to hosts and switches that
are alone in their kind, or to places that are unclear, too. Facts (`facts`) part the places: those of one kind have the
same far ends that are certain, and the same answers to all facts. As long as two places of one kind lead by the same
port to two kinds, a fact that parts these, behind that port, parts the places.

No switch can hide. One that stands next to a switch which is alone was found by a port of that. One that stands next to
a switch of a kind was found by a port of that one's place: every place is looked at, not one of each kind. So the
places are all switches there are, and the parting ends when no route tells two of a kind apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .network_map import BEYOND, Entry, MapError, Switch
from .words import Word

if TYPE_CHECKING:
    from .facts import Fact
    from .search import Search

__all__ = ["tell_apart"]

MOST_PLACES = 512
"""Places looked at, before the search is given up: each of 40 switches of 8 ports by most of its cables."""


@dataclass
class _Place:
    """A switch as it is seen by one way.

    - `access`, `home`: the ways to and from it. `test`: a test that it passes, and perhaps others, too.
    - `row`: far ends that are certain. `unclear`: the other ports, with the places that they lead to.
    - `cells`: the kinds of those. `kind`: its own.
    - `signature`: which of the facts are true here.
    """

    access: Word
    home: Word
    test: Fact
    row: dict[int, Entry] = field(default_factory=dict)
    unclear: dict[int, _Place] = field(default_factory=dict)
    cells: dict[int, int] = field(default_factory=dict)
    kind: int = 0
    signature: list[bool] = field(default_factory=list)


async def tell_apart(search: Search) -> tuple[int, ...] | None:
    """Give every open port of a search the kind of its switch. Adds the new kinds to `search.switches`.

    Returns the number of switches of each kind; None if there are new switches to be explored first. Where routes are
    too short to tell switches apart, the map ends before them (`BEYOND`). Raises MapError for numbers that cannot be.
    """
    alone = len(search.switches)
    opened = search.opened()
    await search.identify(opened)
    if search.exploring:
        return None
    cut, parting = search.cut, _Parting(search)
    try:
        for number, port in opened:
            here = search.switches[number]
            if port in here.open:
                back = here.open[port][0]
                place = _Place((*here.access, port), (back, *here.home), here.tests[0].behind(back))
                parting.opened[number, port] = await parting.look(place)
                if search.exploring:
                    return None
        if parting.opened:
            await parting.part()
            if search.exploring:
                return None
            parting.note()
        return _sizes(search, alone)
    except MapError:
        if search.cut == cut:
            raise
    del search.switches[alone:]
    for number, port in opened:
        here = search.switches[number]
        entry = here.row.get(port)
        if port in here.open or not isinstance(entry, Switch) or entry.kind >= alone:
            here.open.pop(port, None)
            here.row[port] = BEYOND
    return _sizes(search, alone)


class _Parting:
    """The places of a search and their kinds; `opened`: the place of each open port."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._places: list[_Place] = []
        self._kinds: list[list[_Place]] = []
        self._facts: list[Fact] = []
        self.opened: dict[tuple[int, int], _Place] = {}

    async def look(self, place: _Place) -> _Place:
        """Look at every port of a place. Returns it."""
        search = self._search
        ports = range(search.form.ports)
        ways = [(*place.access, port, x) for port in ports for x in ports]
        passed = await search.passing(ways, [place.test])
        for port in ports:
            # If the port leads to a switch, a port of that leads back, and the test is true behind it.
            back = next((x for x in ports if passed[port * len(ports) + x]), None)
            if back is None:
                row = passed[port * len(ports) : (port + 1) * len(ports)]
                place.row[port] = BEYOND if None in row else None
            else:
                there = _Place((*place.access, port), (back, *place.home), place.test.behind(back))
                number = await search.by_host(there.access, there.home)
                if number is None:
                    number = await search.known(there.access)
                if number is None:
                    place.unclear[port] = there
                else:
                    place.row[port] = Switch(number)
        self._places.append(place)
        if len(self._places) > MOST_PLACES:
            raise MapError(f"more than {MOST_PLACES} places of switches that are told apart by no host")
        return place

    async def part(self) -> None:
        """Part the places until those of one kind lead to the same kinds. Returns early if switches wait."""
        last = list(self._places)
        while last:
            await self._ask([fact for place in last for fact in self._shown(place)])
            last = await self._further(last)
            if self._search.exploring:
                return
        more: list[Fact] = []
        while True:
            await self._ask(more)
            for place in self._places:
                for port, there in place.unclear.items():
                    kind = await self._kind_of(there.access)
                    if kind is None:
                        raise MapError(f"the switch at {there.access} has changed")
                    place.cells[port] = kind
            more = [fact for fact in self._parting_facts() if fact not in self._facts]
            if not more:
                return

    async def _further(self, last: list[_Place]) -> list[_Place]:
        """Look at all places that the `last` ones lead to and that are of no kind yet. Returns them."""
        found = []
        for place in last:
            for port, there in place.unclear.items():
                kind = await self._kind_of(there.access)
                if kind is not None:
                    place.cells[port] = kind
                    continue
                found.append(there)
        for there in found:
            await self.look(there)
            if self._search.exploring:
                return []
            for port, cell in there.unclear.items():
                kind = await self._kind_of(cell.access)
                if kind is not None:
                    there.cells[port] = kind
        return found

    def _shown(self, place: _Place) -> Iterator[Fact]:
        """Facts of a place by its ports that lead to switches or kinds that are known."""
        for port, entry in sorted(place.row.items()):
            if isinstance(entry, Switch):
                yield from (test.behind(port) for test in self._search.switches[entry.kind].tests)
        for port, kind in sorted(place.cells.items()):
            signature = self._kinds[kind][0].signature
            yield self._facts[signature.index(True)].behind(port)

    async def _ask(self, facts: list[Fact]) -> None:
        """Have every place answer all facts, the further ones too, and group the places anew."""
        self._facts += dict.fromkeys(fact for fact in facts if fact not in self._facts)
        for number, fact in enumerate(self._facts):
            new = [place for place in self._places if len(place.signature) <= number]
            answers = await self._search.passing([place.access for place in new], [fact])
            for place, answer in zip(new, answers, strict=True):
                if answer is None:
                    raise MapError(f"the way {place.access}: a route does not hold what is asked there")
                place.signature.append(answer)
        groups: dict[str, list[_Place]] = {}
        for place in self._places:
            groups.setdefault(repr((sorted(place.row.items()), place.signature)), []).append(place)
        self._kinds = list(groups.values())
        for kind, places in enumerate(self._kinds):
            if True not in places[0].signature:
                raise MapError(f"the way {places[0].access} leads to a switch that no host shows")
            for place in places:
                place.kind = kind

    async def _kind_of(self, access: Word) -> int | None:
        """The kind of the switch at the end of a way, None if it is of none: answer by answer fewer are left."""
        left = {kind: places[0].signature for kind, places in enumerate(self._kinds)}
        asked: set[int] = set()
        while len({tuple(signature) for signature in left.values()}) > 1:
            trues = [sum(signature[fact] for signature in left.values()) for fact in range(len(self._facts))]
            fact = min(range(len(trues)), key=lambda one: abs(2 * trues[one] - len(left)))
            answer = await self._search.holds(access, [self._facts[fact]])
            asked.add(fact)
            left = {kind: signature for kind, signature in left.items() if signature[fact] == answer}
        if not left:
            return None
        kind = min(left)
        rest = [fact for number, fact in enumerate(self._facts) if left[kind][number] and number not in asked]
        return kind if await self._search.holds(access, rest) else None

    def _parting_facts(self) -> Iterator[Fact]:
        """Facts that part places which have the same answers, but lead to different kinds."""
        groups: dict[tuple[bool, ...], list[_Place]] = {}
        for place in self._places:
            groups.setdefault(tuple(place.signature), []).append(place)
        for first, *others in groups.values():
            for other in others:
                for port in sorted({*first.cells, *other.cells}):
                    one, two = first.cells.get(port), other.cells.get(port)
                    if one == two:
                        continue
                    signatures = [
                        self._kinds[kind][0].signature if kind is not None else [False] * len(self._facts)
                        for kind in (one, two)
                    ]
                    for fact, a, b in zip(self._facts, *signatures, strict=True):
                        if a != b:
                            yield fact.behind(port)
                            break

    def note(self) -> None:
        """Write the kinds into the search as its last switches."""
        search = self._search
        first = len(search.switches)
        for places in self._kinds:
            place = places[0]
            row = dict(place.row) | {port: Switch(first + cell) for port, cell in place.cells.items()}
            search.add_kind(place.access, place.home, [place.test], row)
        for (switch, port), place in self.opened.items():
            here = search.switches[switch]
            here.open.pop(port, None)
            here.row[port] = Switch(first + place.kind)


def _sizes(search: Search, alone: int) -> tuple[int, ...]:
    """The switches of each kind: cables between two kinds have as many ends at the one as at the other."""
    rows = [one.row for one in search.switches]

    def ports(here: int, there: int) -> int:
        return sum(entry == Switch(there) for entry in rows[here].values())

    sizes = dict.fromkeys(range(alone), 1)
    waiting = list(sizes)
    while waiting:
        here = waiting.pop()
        for there in sorted({entry.kind for entry in rows[here].values() if isinstance(entry, Switch)}):
            if there == here:
                continue
            ends, back = sizes[here] * ports(here, there), ports(there, here)
            if not back or ends % back or sizes.get(there, ends // back) != ends // back:
                raise MapError(f"kinds {here} and {there}: {ends} cables, {back} to each switch")
            if there not in sizes:
                sizes[there] = ends // back
                waiting.append(there)
    if len(sizes) < len(rows):
        raise MapError("a kind of switch that no cable leads to")
    return tuple(sizes[number] for number in range(len(rows)))
