"""via-scalability: latency against declared and active VIs, up the ladder of designs of card and firmware.

A node has four processes, one on each processor. Each owns a quarter of the VIs that are declared, and uses a part of
them, its active ones. In a round it posts to all its active VIs, then waits for an answer on each. The latency of a
message is the time from its post until its answer has been received, as in nagar-thesis-2001 4.3.1.

The node is RTL with its firmware and its processes. A second card stands for its peers, which are up to 127 nodes in
the thesis. It is a full one of the same design, with as many VIs (`peers=card`), or the model of one, with times that
were measured on such a card (`peers=model`).

The workloads:

- Type I: a process uses one of its VIs at a time, chosen at random.
- Type II: all VIs are active.
- Type III: a fixed number of them is.
- Type IV: as III, with several messages on a VI at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lanikai.firmware.via.ladder import LADDER, rung
from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field

from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..measure.via_peer_times import MODELLED, peer_times
from .scalability_claims import by_load, claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...systems.cluster import ClusterConfig

__all__ = ["Load", "ViaScalability", "ViaScalabilityParameters", "loads"]

BASE, OVERLAP, QUEUES, DOOR, TAILGATING, TWO_CPUS, SHADOW = LADDER
PROCESSES = 4
ROUNDS = {"quick": 2, "full": 8}
"""Rounds that are measured. One before them is not."""
FEW, FEW_ROUNDS = 12, 6
"""Active VIs up to which a round has few messages: quick, so many rounds are measured."""
MANY, ALL = 60, 508
"""Active VIs from which on a round has messages enough for few rounds, and for one alone, with none before it."""
LEAST_MESSAGES = 208
"""Messages of a load whose curve is to be a line, quick too: their standard error is 4% of the mean.

A wait for a turn of polls, or a search for a VI, is anything from none to a whole turn. So the mean of n of them has a
standard error of 1 / sqrt(3 n) of it. With 24, the least that other loads have, a line's squared correlation of 0.98
would be luck."""
MANY_ROUNDS = 3
"""Quick, rounds of 60 messages. With one, processes that were ahead of the others found the card idle.

So a mean of Base was 1.7 ms in one run, and 3.1 ms in another."""
DECLARED = (4, 28, 60, 124, 252, 508)
BY_LOAD = ("type", "declared_vis", "active_vis", "message_bytes", "messages_at_once")
RESULTS = (
    "latency_us",
    "wait_us",
    "host_receive_us",
    "descriptor_dmas",
    "peer_latency_us",
    "peer_interval_us",
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """A run.

    - `design`: a rung of the ladder.
    - `declared`, `active`: VIs of the node, multiples of 4; one a process at a time, for type I.
    - `message_bytes`; `immediate`: whether the data stand in the descriptor.
    - `messages`: messages on a VI at once.
    - `completion_queue`: whether processes look there for what has come, or at each VI.
    - `random_vi`: type I.
    """

    design: str
    declared: int
    active: int
    message_bytes: int
    immediate: bool = False
    messages: int = 1
    completion_queue: bool = True
    random_vi: bool = False

    @property
    def kind(self) -> str:
        """The type of the workload, as 4.3.1 numbers them."""
        if self.random_vi:
            return "I"
        if self.messages > 1:
            return "IV"
        return "II" if self.active == self.declared else "III"

    @property
    def line(self) -> bool:
        """Whether a claim is about its curve's being a line: claim_base, and searches without a completion queue."""
        return (self.random_vi and not self.completion_queue) or (self.immediate and self.active < MANY)

    @property
    def card(self) -> tuple[str, bool, bool]:
        """The set-up in which it runs: loads of the same one share a simulation."""
        return self.design, self.immediate, self.completion_queue

    def spec(self, *, rounds: int, warm_up: int, peers: str) -> dict[str, Any]:
        """The load for the coroutine that runs it: `rounds` are measured, behind `warm_up` others.

        Raises UserError for a load whose peers were not measured, with `peers` = model.
        """
        own = {
            "design": self.design,
            "type": self.kind,
            "declared_vis": self.declared,
            "active_vis": self.active,
            "message_bytes": self.message_bytes,
            "immediate": self.immediate,
            "messages_at_once": self.messages,
        }
        peer = dict(peer_times(own)) if peers == "model" else None
        return {**own, "rounds": rounds, "warm_up": warm_up, "processes": PROCESSES, "peer": peer}


def rounds(load: Load, size: Size) -> int:
    """Rounds of a load that are measured."""
    least = -(-LEAST_MESSAGES // load.active) if load.line else 1
    if size == "full":
        found = ROUNDS[size]
    elif load.active >= MANY:
        found = MANY_ROUNDS if load.active < ALL else 1
    else:
        found = FEW_ROUNDS if load.active <= FEW else ROUNDS[size]
    return max(found, least)


def point(loads: Sequence[Load], size: Size, peers: str) -> Point:
    """The point that runs loads of one card, by rising numbers of declared VIs, with peers as a full card or a model.

    The designs have the same workload. Raises UserError as `Load.spec`.
    """
    design, immediate, queue = loads[0].card
    specs = []
    for one in sorted(loads, key=lambda load: load.declared):
        warm_up = 0 if size == "quick" and one.active >= ALL else 1
        specs.append(one.spec(rounds=rounds(one, size), warm_up=warm_up, peers=peers))
    label = design + (", immediate" if immediate else "") + ("" if queue else ", no CQ")
    own: dict[str, Any] = {
        "design": design,
        "immediate": immediate,
        "completion_queue": queue,
        "peers": peers,
    }
    lists = {name: [one[name] for one in specs] for name in BY_LOAD}
    return Point(
        label=label,
        parameters={**own, **lists},
        spec={**own, "loads": specs},
        workload="immediate" if immediate else "long",
    )


def loads(size: Size) -> list[Load]:
    """The runs, each once, by the claims that need them."""
    full = size == "full"
    declared = DECLARED if full else (60, 508)
    some = (28, 124, 252, 508)
    actives = (12, 28, 60) if full else (12, 60)
    found: list[Load] = []

    def add(design: str, declared: int, active: int, message_bytes: int, **more: Any) -> None:
        found.append(
            Load(design=design, declared=declared, active=active, message_bytes=message_bytes, **more)
        )

    for d in some:  # claim_base, figure 4.4
        add(BASE, d, 8, 128, immediate=True)
    for d in DECLARED if full else (508,):  # claim_payload, figure 4.6
        for length in (8, 32, 64, 128) if full else (8, 32):
            # 4.3.4 has shadow queues here. Those of this project hold no immediate data, so the card fetches them.
            add(BASE, d, d, length, immediate=True)
    for d in some if full else (28, 252, 508):  # claim_cq, figure 4.7
        for queue in (True, False):
            add(BASE, d, PROCESSES, 128, completion_queue=queue, random_vi=True)
    for u in actives:  # claim_overlap, claim_dmaq, figures 4.8 to 4.11
        for design in (BASE, OVERLAP, QUEUES):
            for length in (128, 4096):
                for d in [one for one in declared if one >= u] if full else (60,):
                    add(design, d, u, length)
        for d in (60, 124, 252, 508) if full else (60, 124, 508):  # claim_door, figures 4.12, 4.13
            add(QUEUES, d, u, 128)
            add(DOOR, d, u, 128)
        for design in (TWO_CPUS, SHADOW):  # claim_2cpu, claim_shadow, figures 4.15, 4.16
            add(design, 60, u, 128)
        for design in (DOOR, TAILGATING):  # claim_tailgate, figure 4.14
            add(design, 60, u, 128, messages=2)
        for d in (60, 508):  # claim_total, figures 4.17 to 4.19
            for length in (128, 1024, 4096):
                for design in (BASE, SHADOW):
                    if full or length != 1024 or d == 60:
                        add(design, d, u, length)
    for d in DECLARED if full else (4, 508):  # the latency that does not depend on declared VIs, from 4 on
        add(DOOR, d, 4, 128)
    return list(dict.fromkeys(found))


class ViaScalabilityParameters(Config):
    """Parameters of via-scalability."""

    peers: Literal["size", "model", "card"] = Field(
        "size",
        description="what answers: model, with times that were measured on a full card; card: a second full card; "
        "size: in the quick size the model, but a card where doorbells are polled; a card in the full one",
    )


class ViaScalability(Experiment):
    """The ladder of nagar-thesis-2001 4.3."""

    name = "via-scalability"
    asks = "What does each step from a simple card to one with queues, doorbells and two processors bring to many VIs?"
    source = "nagar-thesis-2001 4.3, figures 4.4-4.19"
    entry = "lanikai.sim.experiments.via.rounds:measure"
    Parameters = ViaScalabilityParameters
    by_flow = (*BY_LOAD, *RESULTS)
    element = "load"

    def points(self, parameters: ViaScalabilityParameters, size: Size) -> list[Point]:
        """A point a card and set-up, with all loads that run on it."""

        def peers(design: str) -> str:
            if parameters.peers != "size":
                return parameters.peers
            return "model" if size == "quick" and design in MODELLED else "card"

        cards: dict[Any, list[Load]] = {}
        for one in loads(size):
            cards.setdefault(one.card, []).append(one)
        return [point(some, size, peers(some[0].design)) for some in cards.values()]

    def system(self, parameters: Any, point: Point) -> ClusterConfig:
        """Two cards: the node's, of the point's design, and one that stands for all peers."""
        from ...systems.cluster import cluster_preset

        return cluster_preset(
            "via5", nodes=2, nic=ladder_card(point.parameters["design"]), firmware="via", memory_bytes=1 << 23
        )

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Means over the messages of each load, microseconds.

        They are latency, wait in the send queue (stages 1 and 2), and the time that a process spends to find a message
        that has come. Then DMAs of descriptors, a message sent, and a peer's times.
        """
        found = [
            {
                "latency_us": _mean(one["latencies_us"]),
                "wait_us": one["wait_us"],
                "host_receive_us": one["host_receive_us"],
                "descriptor_dmas": one["descriptor_dmas"] / one["messages"],
                **{f"peer_{name}": value for name, value in one["peer"].items()},
            }
            for one in measured["loads"]
        ]
        return {name: [one[name] for one in found] for name in RESULTS}

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The ten claims of published.toml, and that on declared VIs from 4 on."""
        return claims(outcomes)

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Latency against declared VIs, a panel a size of message, a line a design and number of active VIs."""
        lengths = (128, 1024, 4096)
        panels = figure.subplots(1, len(lengths))
        for axes, length in zip(panels, lengths, strict=True):
            lines: dict[tuple[str, int], list[tuple[int, float]]] = {}
            for its, results in by_load(outcomes):
                plain = not its["immediate"] and its["messages_at_once"] == 1 and its["type"] != "I"
                if plain and its["message_bytes"] == length:
                    lines.setdefault((its["design"], its["active_vis"]), []).append(
                        (its["declared_vis"], results["latency_us"])
                    )
            for (design, active), found in lines.items():
                style = "o-" if active == 12 else "s--" if active == 60 else "^:"
                found.sort()
                axes.plot(
                    *zip(*found, strict=True), style, markersize=3, color=f"C{list(LADDER).index(design)}"
                )
            axes.set_title(f"{length} bytes")
            axes.set_xlabel("declared VIs")
            axes.set_yscale("log")
        panels[0].set_ylabel("latency (µs)")
        for number, design in enumerate(LADDER):
            panels[0].plot([], [], color=f"C{number}", label=design)
        for style, text in (("o-", "12 active"), ("s--", "60 active"), ("^:", "other")):
            panels[0].plot([], [], style, color="grey", label=text)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
        figure.suptitle("Latency of a message and its answer, up the ladder")


def ladder_card(design: str) -> NicConfig:
    """The card of a design: `via5` with 512 channels, which hold 508 VIs and the agent's."""
    return rung(design).nic(preset(NicConfig, "via5"))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
