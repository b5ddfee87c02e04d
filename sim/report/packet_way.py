"""The lanes of packets in a trace that `lanikai waves DIR --trace` wrote: a lane for each router and node.

Such a trace has a slice for each end of a link that a packet passes. A packet is in a router, or leaves or reaches a
node, from its first flit at the first end there to its last flit at the last end. The parts of a card (doorbell, bus,
engines, firmware) keep their tracks, and work for no one packet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["FIELDS", "is_packet", "is_state", "packet_name", "stays"]

FIELDS = ("source", "destination", "kind", "flow", "sequence_number")
"""Fields of a header, which together are a packet's name."""


def is_packet(event: Mapping[str, Any]) -> bool:
    """Whether an event is a packet, with its whole header, at an end of a link."""
    given = event.get("args")
    return event.get("cat") == "packet" and isinstance(given, dict) and all(name in given for name in FIELDS)


def is_state(event: Mapping[str, Any]) -> bool:
    """Whether an event is work of a card's part."""
    return event.get("cat") == "state"


def packet_name(given: Mapping[str, Any]) -> str:
    """The header in words. Flow and kind are left out where they are 0."""
    more = "".join(f", {name} {given[name]}" for name in ("flow", "kind") if given[name])
    return f"packet {given['sequence_number']}, {given['source']} to {given['destination']}{more}"


def stays(
    events: Sequence[Mapping[str, Any]], places: Mapping[Any, str], ends: Mapping[tuple[Any, Any], str]
) -> Iterator[tuple[str, str, str, float, float]]:
    """Lane, packet, what it does there, first and last time of every stay. `places`: names of processes; `ends`: names
    of threads, by process and thread."""
    found: dict[tuple[Any, ...], list[tuple[float, float, str]]] = {}
    for event in events:
        pid = event.get("pid")
        key = (pid, *(event["args"][name] for name in FIELDS))
        end = ends.get((pid, event.get("tid")), "?")
        found.setdefault(key, []).append((event["ts"], event["ts"] + event["dur"], end))
    for (pid, *header), passed in found.items():
        passed.sort()
        way = ", then ".join(end for _, _, end in passed)
        name = packet_name(dict(zip(FIELDS, header, strict=True)))
        yield (
            str(places.get(pid, f"process {pid}")),
            name,
            way,
            passed[0][0],
            max(last for _, last, _ in passed),
        )
