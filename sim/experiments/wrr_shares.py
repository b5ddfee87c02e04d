"""wrr-shares: the shares of a link's VLs, against the weights in its arbiter's table.

Every node but node 0 floods node 0 on all active VLs, each with packets enough at all times. A bandwidth R_v a VL
becomes a weight W_v (`lanikai.hdl.weights`: yum-2006 3.3, with its truncation) in a small or a large frame. The
router's agent writes the weights, of idle VLs too, before the traffic starts. Flits that reach node 0 in a window of
whole frames are counted by VL.

Beside sets of VLs that send all the time there are points with an event under load, before the window. The heaviest VL
stops (`leaves`), or stops and starts again (`returns`), or the agent writes the weights in reverse order (`rewritten`).

**Link rate.** At a flit a cycle all that crosses leaves, so the shares are those of the crossbar outputs. On a slower
link VLs pile up behind it, and the shares are those of the link's arbiter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config, ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.hdl.vl_arbiter.base import VlArbiter
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from lanikai.hdl.weights import LARGE_FRAME, MAX_WEIGHT, TABLE_ENTRIES, small_frame, table_entries, vl_weights
from pydantic import Field, model_validator

from ..systems.traffic_config import TrafficNetworkConfig
from .framework.base import Claim, Experiment, Outcome, Point, Size
from .measure.named_networks import named_network
from .measure.traffic_results import TABLE_CYCLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.traffic_network import TrafficNetwork

__all__ = ["VARIANTS", "WrrShares", "WrrSharesParameters", "measure", "variant_names", "variant_of"]


@dataclass(frozen=True)
class Variant:
    """A VL arbiter by name (`arbiter`), with the weights of the `large` frame or of the small one. Arbiters whose turns
    end with packets take weights in units of their own, or as quanta of so many packets."""

    arbiter: str
    large: bool = False

    @property
    def kind(self) -> type[VlArbiter]:
        """The arbiter's class."""
        return VL_ARBITERS[self.arbiter]


VARIANTS = {
    "small_fast": Variant("table_fast"),
    "small_slow": Variant("table_slow"),
    "large_fast": Variant("table_fast", large=True),
    "large_slow": Variant("table_slow", large=True),
    "iba": Variant("table_iba"),
    "deficit": Variant("deficit"),
}
"""The variants by name. The name of any other arbiter that has tables stands for it, with the small frame
(`variant_of`)."""


def variant_names() -> list[str]:
    """The names that a user can give: those of `VARIANTS`, and of the arbiters with tables that none of them has."""
    known = {one.arbiter for one in VARIANTS.values()}
    return [*VARIANTS, *(name for name, kind in VL_ARBITERS.items() if kind.has_tables and name not in known)]


def variant_of(name: str) -> Variant:
    """The variant of that name. Raises ConfigError with the valid names."""
    if name in VARIANTS:
        return VARIANTS[name]
    if name not in VL_ARBITERS:
        raise ConfigError(f"variants = {name!r}: some of {', '.join(variant_names())}")
    if not VL_ARBITERS[name].has_tables:
        raise ConfigError(
            f"variants = {name!r}: this arbiter has no tables of weights; some of {', '.join(variant_names())}"
        )
    return Variant(name)


QUICK_LARGE_FRAME = 640
"""The large frame of the quick size, flits."""
WITHIN = 0.01
"""Relative: achieved shares against those of the weights."""
COUNTED_FLITS = 1000
"""Least flits of a VL in the window, so that one at its ends is 0.1%."""
COUNTED_PACKETS = 200
"""Least packets of a VL in the window where turns end with packets: one is 0.5%."""
WARMUP_CYCLES = 3000
"""Before the window, besides two frames: buffers and source queues fill."""
EVENTS = ("leaves", "returns", "rewritten")
"""Events that may happen under load, with all VLs active before."""
RETURN_CYCLES = 400
"""Time from the event `returns` to the window. Setting every node's class takes up to 200 cycles, the first flits some
20 more. It is no longer, so that what a VL might make up for, or lose, falls into the window."""
REWRITE_CYCLES = 3000
"""Time to write and commit a table everywhere: 128 entries of some cycles each, and twice `TABLE_CYCLES`."""
FLIT_BITS = 32


class WrrSharesParameters(Config):
    """Parameters of wrr-shares."""

    variants: str = Field(
        "small_fast,small_slow,large_fast,large_slow",
        description="frames and pointers to compare",
        json_schema_extra={"range": f"one or more of {', '.join(variant_names())}, separated by commas"},
    )
    bandwidths: list[int] = Field(
        [3, 13, 17, 31],
        min_length=2,
        max_length=4,
        description="required bandwidth of each VL, in any unit",
        json_schema_extra={"range": "list of 2 to 4 bandwidths, each 1 to 65535"},
    )
    k: int = Field(4, ge=1, le=63, description="the small frame is so many flits a VL")
    large_frame_flits: int = Field(
        0,
        ge=0,
        le=LARGE_FRAME,
        description="the large frame; 0: 640 in the quick size, the largest that the table holds (16320, or less if "
        "the bandwidths do not suit it) in the full one",
    )
    frames: int = Field(
        50, ge=1, le=1000, description="frames to measure; more where a VL would send too little to tell"
    )
    inputs: int = Field(3, ge=1, le=7, description="nodes that send, all of them on every active VL")
    packet_flits: int = Field(
        16, ge=4, le=1023, description="packet length, header included, flits of 32 bits"
    )
    buffer_flits: int = Field(16, ge=2, le=1024, description="input and output buffer of each VL, flits")
    link_rate: str = Field(
        "1",
        description="rate of all links, flits a cycle",
        json_schema_extra={"range": "a fraction above 0 and at most 1"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for vl, bandwidth in enumerate(self.bandwidths):
            if not 1 <= bandwidth <= 65535:
                raise ValueError(f"bandwidths[{vl}] = {bandwidth}: 1 to 65535")
        for name in self.names:
            variant_of(name)
            self.system(name)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"variants = {self.variants!r}: one is named twice")
        if self.large_frame_flits:
            table_entries(self.weights("large_fast", "full"))
        for name in self.names:
            if variant_of(name).kind.sparse_tables and max(self.frame(name, "full")) > MAX_WEIGHT:
                raise ValueError(
                    f"packet_flits = {self.packet_flits}: quanta of {self.frame(name, 'full')} flits; at most "
                    f"{MAX_WEIGHT}"
                )
        return self

    @cached_property
    def names(self) -> list[str]:
        """The names in `variants`."""
        return [name.strip() for name in self.variants.split(",")]

    @cached_property
    def rate(self) -> Fraction:
        """`link_rate`. Raises ConfigError."""
        try:
            rate = Fraction(self.link_rate)
        except (ValueError, ZeroDivisionError):
            rate = Fraction(0)
        if not 0 < rate <= 1 or rate.denominator > 4096:
            raise ConfigError(
                f"link_rate = {self.link_rate!r}: a fraction above 0 and at most 1, such as 1/2"
            )
        return rate

    def system(self, variant: str) -> TrafficNetworkConfig:
        """The router with a variant's arbiter, and its traffic nodes. Raises ConfigError."""
        vls = len(self.bandwidths)
        router = RouterConfig(
            link=LinkConfig(
                flit_bits=FLIT_BITS, vls=vls, rate_num=self.rate.numerator, rate_den=self.rate.denominator
            ),
            input_buffer_flits=self.buffer_flits,
            output_buffer_flits=self.buffer_flits,
            vl_arbiter=variant_of(variant).arbiter,
        )
        network = named_network(f"router{self.inputs + 1}", router)
        return TrafficNetworkConfig(network=network, classes=vls, queue_packets=8, agents=True)

    def weights(self, variant: str, size: Size) -> list[int]:
        """The weight of each VL: in flits, for `iba` in 64 bytes, for `deficit` in packets."""
        if not variant_of(variant).large:
            return vl_weights(self.bandwidths, small_frame(self.k, len(self.bandwidths)))
        if self.large_frame_flits or size == "quick":
            return vl_weights(self.bandwidths, self.large_frame_flits or QUICK_LARGE_FRAME)
        whole = vl_weights(self.bandwidths, LARGE_FRAME)
        if sum(ceil(weight / MAX_WEIGHT) for weight in whole) <= TABLE_ENTRIES:
            return whole
        # All but one VL may waste most of their last entry.
        return vl_weights(self.bandwidths, MAX_WEIGHT * (TABLE_ENTRIES + 1 - len(whole)))

    def frame(self, variant: str, size: Size) -> list[int]:
        """Flits that each VL may send in a frame."""
        weights, kind = self.weights(variant, size), variant_of(variant).kind
        if kind.sparse_tables:
            return [weight * self.packet_flits for weight in weights]
        if kind.weight_bytes:
            # A packet is charged in whole units, and finished once it is begun.
            units = ceil(self.packet_flits * FLIT_BITS // 8 / kind.weight_bytes)
            return [ceil(weight / units) * self.packet_flits for weight in weights]
        return weights

    def table(self, variant: str, size: Size, *, backwards: bool = False) -> list[tuple[int, int]]:
        """Rows (VL, weight) to write. With `backwards` they have the weights of the VLs in reverse order."""
        order = -1 if backwards else 1
        if variant_of(variant).kind.sparse_tables:
            return list(enumerate(self.frame(variant, size)[::order]))
        return table_entries(self.weights(variant, size)[::order])

    def subsets(self, size: Size) -> list[tuple[int, ...]]:
        """Sets of active VLs. The quick size has: all, all but the last, the first and the last, and the last."""
        vls = range(len(self.bandwidths))
        if size == "quick":
            return list(dict.fromkeys([tuple(vls), tuple(vls[:-1]), (0, vls[-1]), (vls[-1],)]))
        return [some for count in reversed(vls) for some in combinations(vls, count + 1)]


class WrrShares(Experiment):
    """Achieved shares of a link against the weights of its VLs."""

    name = "wrr-shares"
    asks = "Does each virtual lane get the share of a link that its weight says, whoever else sends?"
    source = "yum-2006 3.3"
    entry = "lanikai.sim.experiments.wrr_shares:measure"
    Parameters = WrrSharesParameters
    by_flow = (
        "bandwidths",
        "weights",
        "frame_flits",
        "accepted_flits",
        "share",
        "weight_share",
        "bandwidth_share",
    )
    element = "VL"

    def points(self, parameters: WrrSharesParameters, size: Size) -> list[Point]:
        """A point for each variant and set of active VLs, and for each event."""
        return [
            self._point(parameters, variant, active, size, event)
            for variant in parameters.names
            for active, event in [
                *((some, None) for some in parameters.subsets(size)),
                *((tuple(range(len(parameters.bandwidths))), event) for event in EVENTS),
            ]
        ]

    @staticmethod
    def _point(
        parameters: WrrSharesParameters, variant: str, active: Sequence[int], size: Size, event: str | None
    ) -> Point:
        whole = parameters.frame(variant, size)[:: -1 if event == "rewritten" else 1]
        leaver = whole.index(max(whole))
        senders = sorted(active, key=lambda vl: (bool(event) and vl != leaver, vl))
        if event == "leaves":
            active = [vl for vl in active if vl != leaver]
        frame = [flits if vl in active else 0 for vl, flits in enumerate(whole)]
        settled = WARMUP_CYCLES + ceil(2 * sum(whole) / parameters.rate)
        warmup = {
            None: settled,
            "leaves": 2 * settled,
            "returns": 2 * settled + RETURN_CYCLES,
            "rewritten": 2 * settled + REWRITE_CYCLES,
        }[event]
        least = (
            COUNTED_PACKETS * parameters.packet_flits
            if variant_of(variant).kind.whole_packets
            else COUNTED_FLITS
        )
        frames = max(parameters.frames, ceil(least / min(flits for flits in frame if flits)))
        classes = [
            ClassSetup(
                mode="periodic", load=1.0, packet_flits=parameters.packet_flits, pattern="fixed", node=0,
                vl_first=vl,
            )
            for vl in senders
        ]  # fmt: skip
        return Point(
            label=f"{variant}, {event or 'VL ' + ' '.join(map(str, active))}",
            parameters={
                **parameters.model_dump(mode="json", exclude={"variants", "large_frame_flits"}),
                "variant": variant,
                "event": event,
                "weights": parameters.weights(variant, size)[:: -1 if event == "rewritten" else 1],
                "active_vls": list(active),
                "frame_flits": frame,
                "frames": frames,
            },
            spec={
                "table": parameters.table(variant, size),
                "event": event,
                "new_table": parameters.table(variant, size, backwards=True),
                "settled_cycles": settled,
                "classes": [one.model_dump(mode="json") for one in classes],
                "warmup_cycles": warmup,
                "window_cycles": ceil(frames * sum(frame) / parameters.rate),
            },
        )

    def system(self, parameters: WrrSharesParameters, point: Point) -> TrafficNetworkConfig:
        """The router with the point's arbiter; variants with one arbiter share it."""
        return parameters.system(point.parameters["variant"])

    def results(
        self, parameters: WrrSharesParameters, point: Point, measured: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The results. Those by VL have 0 for idle ones.

        - `accepted_flits`, `share`: by VL, the flits, and their part of all accepted flits.
        - `weight_share`, `bandwidth_share`: by VL, the share by the active VLs' weights, or untruncated bandwidths.
        - `largest_error`: relative, of `share` against `weight_share`.
        - `link_use`: accepted flits, as a part of what the link can carry.
        """
        active, frame = point.parameters["active_vls"], point.parameters["frame_flits"]
        accepted = [measured["accepted_flits"].get(str(vl), 0) for vl in range(len(frame))]
        backwards = point.parameters["event"] == "rewritten"
        bandwidths = [
            one if vl in active else 0
            for vl, one in enumerate(parameters.bandwidths[:: -1 if backwards else 1])
        ]
        total = sum(accepted)
        share, weight_share, bandwidth_share = (
            [one / (sum(many) or 1) for one in many] for many in (accepted, frame, bandwidths)
        )
        return {
            "accepted_flits": accepted,
            "share": share,
            "weight_share": weight_share,
            "bandwidth_share": bandwidth_share,
            "largest_error": max(abs(share[vl] / weight_share[vl] - 1) for vl in active),
            "link_use": total / float(measured["window_cycles"] * parameters.rate),
        }

    def claims(self, parameters: WrrSharesParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: every variant keeps to its weights, and idle VLs waste nothing."""
        claims = [
            Claim.every(
                f"{variant}: with every set of active VLs, and when one leaves or returns or the weights change, "
                f"the shares are within {WITHIN:.0%} of the weights",
                (
                    one.results["largest_error"] <= WITHIN
                    for one in outcomes
                    if one.point.parameters["variant"] == variant
                ),
            )
            for variant in parameters.names
        ]
        claims.append(
            Claim.every(
                f"what idle VLs leave goes to the others: the link is never idle for more than {WITHIN:.0%}",
                (one.results["link_use"] >= 1 - WITHIN for one in outcomes),
            )
        )
        return claims

    def plot(self, parameters: WrrSharesParameters, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw a panel a variant: a bar a point, of the VLs' shares; lines where they end by the weights."""
        variants = list(dict.fromkeys(one.point.parameters["variant"] for one in outcomes))
        columns = min(2, len(variants))
        # All have the same points: labels below the last of a column, if each column is as long.
        same = len(variants) % columns == 0
        panels = figure.subplots(
            -(-len(variants) // columns), columns, sharex=same, sharey=True, squeeze=False
        )
        for axes, variant in zip(panels.flat, variants, strict=False):
            mine = [one for one in outcomes if one.point.parameters["variant"] == variant]
            places = range(len(mine))
            below, wanted = [0.0] * len(mine), [0.0] * len(mine)
            for vl in range(len(parameters.bandwidths)):
                share = [one.results["share"][vl] for one in mine]
                axes.bar(places, share, bottom=below, color=f"C{vl}", label=f"VL {vl}")
                below = [a + b for a, b in zip(below, share, strict=True)]
                wanted = [a + one.results["weight_share"][vl] for a, one in zip(wanted, mine, strict=True)]
                ends = [p - 0.45 for p in places], [p + 0.45 for p in places]
                axes.hlines(wanted, *ends, color="black", linewidth=1)
            labels = [one.point.label.removeprefix(f"{variant}, ") for one in mine]
            axes.set_xticks(places, labels, rotation=90, fontsize=7)
            axes.set_title(variant, fontsize="medium")
        for axes in panels.flat[len(variants) :]:
            axes.set_visible(False)
        figure.supylabel("share of the link (lines: weights)")
        # Bars fill the axes.
        names = panels[0, 0].get_legend_handles_labels()
        figure.legend(*names, loc="outside lower center", ncols=len(parameters.bandwidths))
        figure.suptitle("Shares of a link, by the VLs that send and by what changes")


async def measure(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: the flits that node 0 accepted of each VL in the window (by number, as text), and its cycles."""
    await system.start_nodes()
    await system.agent(0).write_tables(high=[], low=[tuple(row) for row in spec["table"]])
    await system.clock.sleep(TABLE_CYCLES)
    classes = [ClassSetup(**setup) for setup in spec["classes"]]
    await system.set_classes(classes)
    if spec["event"]:
        system.clock.spawn(_change(system, spec, classes[0]), spec["event"])
    # Sources that flood never drain: what counts is the window.
    measured = await system.measure(
        warmup_cycles=spec["warmup_cycles"], window_cycles=spec["window_cycles"], limit_cycles=1
    )
    return {
        "accepted_flits": {
            str(setup.vl_first): one.accepted_flits
            for setup, one in zip(classes, measured.counts[0], strict=False)
        },
        "window_cycles": measured.window_cycles,
    }


async def _change(system: TrafficNetwork, spec: Mapping[str, Any], leaver: ClassSetup) -> None:
    """Bring the event about, when all VLs have sent for a while."""
    await system.clock.sleep(system.config.traffic.clear_cycles + spec["settled_cycles"])
    if spec["event"] == "rewritten":
        await system.agent(0).write_tables(high=[], low=[tuple(row) for row in spec["new_table"]])
        return
    for node in range(1, system.config.traffic.nodes):
        # A class that would send to its own node is off.
        await system.set_classes([leaver.replace(node=node)], nodes=[node])
    if spec["event"] == "returns":
        await system.clock.sleep(spec["settled_cycles"])
        await system.set_classes([leaver])
