"""Messages of a workload: when each is due, and how many flits it has on the wire.

Generators are plain Python, go on for ever, and depend on nothing but their arguments. A cycle is a flit's time on a
link; a rate is flits a cycle, so a part of the link. Flits count header and CRC.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lanikai.hdl.config import ConfigError, LinkConfig

__all__ = [
    "CONTROL_FLITS",
    "PACKET_FLITS",
    "Message",
    "check_positive",
    "check_rate",
    "merge",
    "payload_bytes",
    "until",
]

PACKET_FLITS = 40
"""Flits of a data packet (yum-2006 6.1)."""
CONTROL_FLITS = 10
"""Flits of a control packet (yum-2006 6.1)."""


class Message(NamedTuple):
    """One message of one packet.

    - `cycle`: when it is due, counted from the start of its source.
    - `flits`: its flits on the wire.
    - `frame`: the number of its video frame or burst, from 0.
    - `last`: it is the last one of its frame.
    """

    cycle: int
    flits: int
    frame: int = 0
    last: bool = True


def payload_bytes(flits: int, link: LinkConfig) -> int:
    """Most payload of a packet of `flits` flits.

    Raises ConfigError if the flits hold no more than header and CRC.
    """
    body = flits - link.header_flits - 1
    if body < 1:
        raise ConfigError(f"payload_bytes: flits = {flits}: at least {link.header_flits + 2}")
    return body * link.flit_bytes


def check_rate(name: str, rate: float) -> None:
    """Raises ConfigError, beginning with `name`, for a rate that is not above 0 and at most 1 flit a cycle."""
    if not 0 < rate <= 1:
        raise ConfigError(f"{name} = {rate}: above 0 and at most 1 flit a cycle")


def check_positive(name: str, value: float) -> None:
    """Raises ConfigError, beginning with `name`, for a value that is not above 0."""
    if not value > 0:
        raise ConfigError(f"{name} = {value}: above 0")


def until(messages: Iterable[Message], cycles: int) -> Iterator[Message]:
    """The messages that are due before cycle `cycles`."""
    for message in messages:
        if message.cycle >= cycles:
            return
        yield message


def merge(sources: Iterable[Iterable[Message]]) -> Iterator[tuple[int, Message]]:
    """Messages of many sources in the order of their times, each with its source's number; ties to the lower one."""

    def numbered(number: int, messages: Iterable[Message]) -> Iterator[tuple[int, int, Message]]:
        for message in messages:
            yield message.cycle, number, message

    streams = [numbered(number, messages) for number, messages in enumerate(sources)]
    for _, number, message in heapq.merge(*streams, key=lambda entry: entry[:2]):
        yield number, message
