"""Ports that lead to one of several kinds, told by the shortest ways on the map.

Where routes are short, `kinds` may leave open which of some kinds a port leads to, as the tests of a kind are long. But
once the kinds are known there are shorter ways to the port, and shorter words that tell just these kinds apart. Each is
asked by one probe. A port that is told makes other ways shorter, so it goes on until nothing more is told.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING

from .network_map import BEYOND, Entry, Host, MapError, Switch
from .words import Word

if TYPE_CHECKING:
    from .search import Search

__all__ = ["Doubts", "tell"]

Doubts = dict[tuple[int, int], tuple[int, ...]]
"""Switch and port -> the switches one of which the port leads to, by their numbers in the search."""


async def tell(search: Search, doubts: Doubts) -> None:
    """Write into the search what the ports lead to, as far as any route can tell; `BEYOND` for the others.

    Raises MapError if a port leads to none of its kinds, as the network has changed.
    """
    for number, port in doubts:
        search.switches[number].row[port] = BEYOND
    left = dict(doubts)
    told = True
    while left and told:
        told = False
        ways = _ways(search)
        for (number, port), kinds in list(left.items()):
            if number not in ways:
                continue
            left[number, port] = kinds = await _fewer(search, (*ways[number], port), kinds)
            if len(kinds) == 1:
                search.switches[number].row[port] = Switch(kinds[0])
                del left[number, port]
                told = True


def _ways(search: Search) -> dict[int, Word]:
    """The shortest way from the mapper's switch to each one that is known."""
    ways: dict[int, Word] = {0: ()}
    waiting = deque([0])
    while waiting:
        here = waiting.popleft()
        for port, entry in sorted(search.switches[here].row.items()):
            if isinstance(entry, Switch) and entry.kind not in ways:
                ways[entry.kind] = (*ways[here], port)
                waiting.append(entry.kind)
    return ways


async def _fewer(search: Search, access: Word, kinds: tuple[int, ...]) -> tuple[int, ...]:
    """Those of some kinds that the place at the end of a way may be."""
    left = kinds
    pairs = deque(combinations(kinds, 2))
    while pairs:
        one, other = pairs.popleft()
        if one not in left or other not in left:
            continue
        for word, host in _parting(search, one, other, search.form.longest - len(access)):
            back = search.home_of(host)
            if search.form.fits(back):
                (answer,) = await search.ask([((*access, *word), back)])
                ends = {kind: _end(search, kind, word) for kind in left}
                came = answer == host
                left = tuple(k for k in left if ends[k] == BEYOND or (ends[k] == Host(host)) == came)
                break
    if not left:
        raise MapError(f"the switch at {access} has changed")
    return left


def _end(search: Search, kind: int, word: Word) -> Entry:
    """The place where a word ends that begins at a switch of a kind."""
    at: Entry = Switch(kind)
    for port in word:
        if not isinstance(at, Switch):
            break
        at = _behind(search, at, port)
    return at


def _behind(search: Search, at: Entry, port: int) -> Entry:
    """The far end of a port of a switch; None of anything else."""
    return search.switches[at.kind].row.get(port) if isinstance(at, Switch) else None


def _parting(search: Search, one: int, other: int, most: int) -> list[tuple[Word, int]]:
    """The shortest words of at most `most` ports that end at a host from the one kind and not from the other.

    Each with its host; none leads over a port whose end is not known. At most one for each host.
    """
    found: dict[int, Word] = {}
    seen: set[tuple[Entry, Entry]] = {(Switch(one), Switch(other))}
    waiting: deque[tuple[Entry, Entry, Word]] = deque([(Switch(one), Switch(other), ())])
    while waiting:
        a, b, word = waiting.popleft()
        if len(word) == most:
            break
        for port in range(search.form.ports):
            ends = _behind(search, a, port), _behind(search, b, port)
            if BEYOND in ends or ends[0] == ends[1]:
                continue
            hosts = [end for end in ends if isinstance(end, Host)]
            for host in hosts:
                found.setdefault(host.node, (*word, port))
            if not hosts and ends not in seen:
                seen.add(ends)
                waiting.append((*ends, (*word, port)))
    return [(word, node) for node, word in found.items()]
