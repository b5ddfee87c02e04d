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

from .doubts import Doubts, tell
from .facts import Fact, Leads
from .network_map import BEYOND, Entry, MapError, Switch
from .words import Word

if TYPE_CHECKING:
    from .search import Found, Search

__all__ = ["tell_apart"]

MOST_PLACES = 512
"""Places looked at, before the search is given up: each of 40 switches of 8 ports by most of its cables."""


@dataclass(eq=False)
class _Place:
    """A switch as it is seen by one way.

    - `access`, `home`: the ways to and from it. `test`: a test that it passes, and perhaps others, too.
    - `row`: far ends that are certain. `unclear`: the other ports, with the places that they lead to.
    - `cells`: the kinds of those. `kind`: its own.
    - `doubts`: ports that lead to one of several kinds, with these. `kinds`: its own, if they are several.
    - `signature`: which of the facts are true here. `like`: the place that stands for this one.
    """

    access: Word
    home: Word
    test: Fact
    row: dict[int, Entry] = field(default_factory=dict)
    unclear: dict[int, _Place] = field(default_factory=dict)
    cells: dict[int, int] = field(default_factory=dict)
    doubts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    kind: int = 0
    kinds: tuple[int, ...] = ()
    signature: list[bool | None] = field(default_factory=list)
    like: _Place | None = None


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
    for merging in (False, True)[search.merging :]:
        cut = search.cut
        search.shortened = False
        try:
            parting = _Parting(search, merging=merging)
            if not await _part(search, opened, parting):
                return None
            await tell(search, parting.note())
            return _sizes(search, alone)
        except MapError:
            if search.cut == cut and not merging:
                raise
            search.merging = True
            if search.shortened:
                return None  # more can be told by the shorter ways
            del search.switches[alone:]
            for number, port in opened:
                _take_back(search.switches[number], port, alone)
    for number, port in opened:
        here = search.switches[number]
        if here.open.pop(port, None):
            here.row[port] = BEYOND
    return _sizes(search, alone)


def _take_back(here: Found, port: int, alone: int) -> None:
    """Have a port be open again whose kind is not known after all."""
    entry = here.row.get(port)
    if isinstance(entry, Switch) and entry.kind >= alone:
        del here.row[port]
        here.open[port] = here.was_open[port]


async def _part(search: Search, opened: list[tuple[int, int]], parting: _Parting) -> bool:
    """Part the places of open ports. False if there are new switches to be explored first."""
    for number, port in opened:
        here = search.switches[number]
        if port in here.open:
            here.was_open[port] = here.open[port]
            back = here.open[port][0]
            place = _Place((*here.access, port), (back, *here.home), here.tests[0].behind(back))
            parting.opened[number, port] = await parting.look(place)
            if search.exploring:
                return False
    if parting.opened:
        await parting.part()
        if search.exploring:
            return False
    return True


class _Parting:
    """The places of a search and their kinds; `opened`: the place of each open port.

    `merging`: places with the same far ends that are certain count as one kind from the beginning, and one of each is
    looked at further, the nearest. So fewer and shorter probes are needed. What differs only further on goes unseen.
    """

    def __init__(self, search: Search, *, merging: bool) -> None:
        self._search, self._merging = search, merging
        self._places: list[_Place] = []
        self._kinds: list[list[_Place]] = []
        self._facts: list[Fact] = []
        self.opened: dict[tuple[int, int], _Place] = {}
        self._late: list[_Place] = []

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
                place.row[port] = None
                if None in row:
                    place.row[port] = await search.far(place.access, place.home, port)
            else:
                there = _Place((*place.access, port), (back, *place.home), place.test.behind(back))
                number = await search.by_host(there.access, there.home)
                if number is None:
                    number = await search.known(there.access)
                if number is None:
                    place.unclear[port] = there
                else:
                    search.shorten(number, there.access, there.home)
                    place.row[port] = Switch(number)
        self._places.append(place)
        if len(self._places) > MOST_PLACES:
            raise MapError(f"more than {MOST_PLACES} places of switches that are told apart by no host")
        return place

    async def part(self) -> None:
        """Part the places until those of one kind lead to the same kinds. Returns early if switches wait."""
        if self._merging:
            # Those that are too far for their ports may be found from elsewhere, too.
            self._late = [place for place in self._places if BEYOND in place.row.values()]
            self._places = [place for place in self._places if place not in self._late]
        last = self._merged(list(self._places))
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
                    seen = there.like
                    kinds = (
                        (seen.kind,)
                        if seen is not None and seen in self._places
                        else await self._kinds_of(there.access, lenient=self._merging)
                    )
                    if not kinds:
                        raise MapError(f"the switch at {there.access} has changed")
                    place.doubts.pop(port, None)
                    place.cells.pop(port, None)
                    if len(kinds) > 1:
                        place.doubts[port] = kinds
                    else:
                        place.cells[port] = kinds[0]
            more = [fact for fact in self._parting_facts() if fact not in self._facts]
            if not more:
                break
        for place in self._late:
            place.kinds = await self._kinds_of(place.access, lenient=True)
            if not place.kinds:
                raise MapError(f"no route is long enough for the ports of the switch at {place.access}")
            place.kind = place.kinds[0]

    async def _further(self, last: list[_Place]) -> list[_Place]:
        """Look at all places that the `last` ones lead to and that are of no kind yet. Returns them."""
        found = []
        for place in last:
            for port, there in place.unclear.items():
                kinds = await self._kinds_of(there.access)
                if kinds:
                    place.cells[port] = kinds[0]
                    continue
                found.append(there)
        for there in list(found):
            await self.look(there)
            if self._search.exploring:
                return []
            if BEYOND in there.row.values():
                # Too far for its ports: it may be one that is found from elsewhere, too.
                self._places.remove(there)
                found.remove(there)
                continue
            for port, cell in there.unclear.items():
                kinds = await self._kinds_of(cell.access)
                if kinds:
                    there.cells[port] = kinds[0]
        return self._merged(found)

    def _merged(self, places: list[_Place]) -> list[_Place]:
        """The places of which one each stands for all that look like it, if they are merged."""
        if not self._merging:
            for place in places:
                place.like = place
            return places
        nearest: dict[str, _Place] = {}
        for place in sorted(places, key=lambda one: len(one.access)):
            look = repr((sorted(place.row.items()), sorted(place.cells.items()), sorted(place.unclear)))
            place.like = nearest.setdefault(look, place)
            if place.like is not place:
                self._places.remove(place)
        return list(nearest.values())

    def _shown(self, place: _Place) -> Iterator[Fact]:
        """Facts of a place by its ports that lead to switches or kinds that are known."""
        for port, entry in sorted(place.row.items()):
            if isinstance(entry, Switch):
                yield from (test.behind(port) for test in self._search.switches[entry.kind].tests)
        for port, kind in sorted(place.cells.items()):
            yield self._ways(self._kinds[kind][0])[0].behind(port)

    def _ways(self, place: _Place) -> list[Fact]:
        """The facts that are true of a place and show ways to hosts, the first ones the most certain."""
        answers = zip(self._facts, place.signature, strict=True)
        return [fact for fact, true in answers if true and isinstance(fact, Leads)]

    async def _ask(self, facts: list[Fact]) -> None:
        """Have every place answer all facts, the further ones too, and group the places anew."""
        self._facts += dict.fromkeys(fact for fact in facts if fact not in self._facts)
        for number, fact in enumerate(self._facts):
            new = [place for place in self._places if len(place.signature) <= number]
            answers = await self._search.passing([place.access for place in new], [fact])
            for place, answer in zip(new, answers, strict=True):
                if answer is None and not self._merging:
                    raise MapError(f"the way {place.access}: a route does not hold what is asked there")
                place.signature.append(answer)
        groups: dict[str, list[_Place]] = {}
        for place in self._places:
            groups.setdefault(repr((sorted(place.row.items()), place.signature)), []).append(place)
        self._kinds = list(groups.values())
        for kind, places in enumerate(self._kinds):
            if not self._ways(places[0]):
                raise MapError(f"the way {places[0].access} leads to a switch that no host shows")
            for place in places:
                place.kind = kind

    async def _kinds_of(self, access: Word, *, lenient: bool = False) -> tuple[int, ...]:
        """The kind of the switch at the end of a way, none if it is of none: answer by answer fewer are left.

        `lenient`: several, if no route is long enough to tell which of them.
        """
        left = {kind: places[0].signature for kind, places in enumerate(self._kinds)}
        asked: set[int] = set()
        told: set[int] = set()
        while True:
            shares = {
                number: sum(signature[number] is True for signature in left.values())
                for number in range(len(self._facts))
                if number not in asked and {True, False} <= {signature[number] for signature in left.values()}
            }
            if not shares:
                break
            fact = min(shares, key=lambda one: abs(2 * shares[one] - len(left)))
            asked.add(fact)
            (answer,) = await self._search.passing([access], [self._facts[fact]])
            if answer is not None:
                told.add(fact)
                left = {kind: one for kind, one in left.items() if one[fact] in (answer, None)}
        if not left:
            return ()
        if len(left) > 1 and lenient:
            return tuple(sorted(left))
        kind = min(left)
        rest = [fact for number, fact in enumerate(self._facts) if left[kind][number] and number not in told]
        (answer,) = await self._search.passing([access], rest)
        return (kind,) if answer or (answer is None and lenient) else ()

    def _parting_facts(self) -> Iterator[Fact]:
        """Facts that part places which have the same answers, but lead to different kinds."""
        groups: dict[tuple[bool | None, ...], list[_Place]] = {}
        for place in self._places:
            groups.setdefault(tuple(place.signature), []).append(place)
        for first, *others in groups.values():
            for other in others:
                for port in sorted({*first.cells, *other.cells} - {*first.doubts, *other.doubts}):
                    one, two = first.cells.get(port), other.cells.get(port)
                    if one == two:
                        continue
                    signatures = [
                        self._kinds[kind][0].signature if kind is not None else [False] * len(self._facts)
                        for kind in (one, two)
                    ]
                    for fact, a, b in zip(self._facts, *signatures, strict=True):
                        if a is not None and b is not None and a != b:
                            yield fact.behind(port)
                            break

    def note(self) -> Doubts:
        """Write the kinds into the search as its last switches. Returns what is open yet."""
        search = self._search
        first = len(search.switches)
        doubts: Doubts = {}
        for number, places in enumerate(self._kinds, first):
            place = places[0]
            for port, kinds in place.doubts.items():
                doubts[number, port] = tuple(first + kind for kind in kinds)
            row = dict(place.row) | {port: Switch(first + cell) for port, cell in place.cells.items()}
            search.add_kind(place.access, place.home, [place.test], row)
        for (switch, port), place in self.opened.items():
            here = search.switches[switch]
            here.open.pop(port, None)
            if len(place.kinds) > 1:
                doubts[switch, port] = tuple(first + kind for kind in place.kinds)
            else:
                here.row[port] = Switch(first + (place.like or place).kind)
        return doubts


def _sizes(search: Search, alone: int) -> tuple[int, ...]:
    """The switches of each kind: cables between two kinds have as many ends at the one as at the other.

    Where a port is `BEYOND`, the other end of a cable may be unknown, and the count with it: 1 then.
    """
    rows = [one.row for one in search.switches]
    whole = not any(BEYOND in row.values() for row in rows)

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
                if whole:
                    raise MapError(f"kinds {here} and {there}: {ends} cables, {back} to each switch")
                back = ends
            if there not in sizes:
                sizes[there] = ends // back
                waiting.append(there)
    if len(sizes) < len(rows):
        raise MapError("a kind of switch that no cable leads to")
    return tuple(sizes[number] for number in range(len(rows)))
