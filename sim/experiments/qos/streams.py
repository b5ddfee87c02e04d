"""Real-time streams of the hosts of a mixed workload: rates, ways, packets, and what is reserved for them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, islice

from lanikai.hdl.config import ConfigError
from lanikai.hdl.network import Network

from ...admission.ledger import RouterLedger
from ...admission.places import HostPlace, RouterPlace
from .messages import Message
from .mix import Mix, on_off_peak
from .mpeg import mpeg, peak_rate, read_film
from .sources import on_off

__all__ = ["Stream", "granted", "plan_streams"]

_film = cache(read_film)


@dataclass(kw_only=True, eq=False)
class Stream:
    """A stream of one host.

    - `source`, `destination`: nodes. `flow`: its number among those between the two.
    - `number`: its place among those of its host.
    - `units`: its mean rate. `peak`: its peak rate, in units.
    - `vl`: its VL.
    - `admitted`: whether it may send.
    """

    source: int
    destination: int
    flow: int
    number: int
    units: int
    peak: int
    vl: int
    admitted: bool = True
    _mix: Mix = field(repr=False)
    _seed: str = field(repr=False)
    _peak_rate: float = field(repr=False)

    def messages(self) -> Iterator[Message]:
        """Its packets, for ever. The same seed gives the same ones."""
        mix, chance = self._mix, random.Random(self._seed)
        if mix.real_time == "on_off":
            return on_off(
                chance,
                peak_rate=self._peak_rate,
                on_cycles=mix.on_cycles,
                off_cycles=mix.off_cycles,
                packet_flits=mix.packet_flits,
            )
        frames = _film(mix.films[self.number % len(mix.films)])
        return mpeg(
            frames,
            rate=self.units / mix.admission_config.link_units,
            interval_cycles=mix.frame_cycles,
            regulator=mix.regulator,
            first_frame=chance.randrange(len(frames)),
            first_cycle=chance.randrange(mix.frame_cycles),
            packet_flits=mix.packet_flits,
            last_at_end=True,
        )


def plan_streams(mix: Mix, *, nodes: int, seed: int) -> list[list[Stream]]:
    """The streams of each node, in the order in which it asks for them.

    A node takes rates in turn, from a place of its own on, as long as one more brings their sum nearer to
    `mix.real_time_units`. Destinations are drawn from all other nodes, VLs from the real-time VLs. They depend on
    `seed` and the load alone, not on the controls. Raises ConfigError for an ON/OFF stream too slow for its ON times.
    """
    return [_of_node(mix, node, nodes, seed) for node in range(nodes)]


def _of_node(mix: Mix, node: int, nodes: int, seed: int) -> list[Stream]:
    chance = random.Random(f"{seed}/streams/{node}")
    others = [other for other in range(nodes) if other != node]
    flows = [0] * nodes
    streams: list[Stream] = []
    total = 0
    rates = mix.stream_units
    for units in islice(cycle(rates), node % len(rates), None):
        if abs(total + units - mix.real_time_units) >= abs(total - mix.real_time_units):
            return streams
        total += units
        number = len(streams)
        destination = chance.choice(others)
        rate = _peak(mix, units, number)
        streams.append(
            Stream(
                source=node,
                destination=destination,
                flow=flows[destination],
                number=number,
                units=units,
                peak=max(units, round(rate * mix.admission_config.link_units)),
                vl=chance.choice(mix.admission_config.real_time_vls),
                _mix=mix,
                _seed=f"{seed}/stream/{node}/{number}",
                _peak_rate=rate,
            )
        )
        flows[destination] += 1
    raise AssertionError("rates go on for ever")


def _peak(mix: Mix, units: int, number: int) -> float:
    """The peak rate of a stream, flits a cycle."""
    rate = units / mix.admission_config.link_units
    if mix.real_time == "mpeg":
        frames = _film(mix.films[number % len(mix.films)])
        return peak_rate(frames, rate=rate, interval_cycles=mix.frame_cycles)
    times = {"on_cycles": mix.on_cycles, "off_cycles": mix.off_cycles}
    peak = on_off_peak(rate=rate, **times, packet_flits=mix.packet_flits)
    if peak is None or peak > 1:
        raise ConfigError(
            f"stream_units: {units}: no ON/OFF stream with on_cycles = {mix.on_cycles} and off_cycles = "
            f"{mix.off_cycles} has this rate; take longer times or other units"
        )
    return peak


def granted(
    mix: Mix, network: Network, streams: Sequence[Sequence[Stream]]
) -> tuple[list[RouterLedger], list[RouterLedger]]:
    """Ledgers of all routers and of all adapters' links, with every stream that is `admitted` on its way, refused or
    not. Without admission the VL tables come from them: weights follow what was asked for."""
    places = [RouterPlace(network, number) for number in range(network.routers)]
    routers = [RouterLedger(mix.admission_config, place.ports) for place in places]
    hosts = [RouterLedger(mix.admission_config, 1) for _ in streams]
    for stream in (one for node in streams for one in node if one.admitted):
        what = {"units": stream.units, "peak": stream.peak}
        hosts[stream.source].add(in_port=None, out_port=0, vl=stream.vl, **what)
        start = HostPlace(network, stream.source)
        at, in_port, vl = start.router, start.in_port, stream.vl
        while at >= 0:
            hop = places[at].hop(in_port, vl, stream.destination)
            routers[at].add(in_port=in_port, out_port=hop.out_port, vl=vl, **what)
            at, in_port, vl = hop.router, hop.in_port, hop.vl
    return routers, hosts
