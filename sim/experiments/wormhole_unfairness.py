"""wormhole-unfairness: a flow that crosses two switches gets less than its neighbours, until those are regulated.

gulati-thesis-2001 2.3 and 3.2, figures 2.4 and 3.2. Two routers in a row:

    B, C, D -> router 0 ====> router 1 -> B's and A's receiver
                         A ->          -> C's receiver, D's receiver

B, C and D contend for the link between the routers, A and B for the port to their receiver. Both routers serve their
inputs in turn, packet by packet. But B waits twice, and while its packet waits at router 1 it holds the link. All four
want the same bandwidth. Then C and D are regulated to half of it; nothing in the routers changes.

The figures have no numbers, so these are choices of this experiment:

- *Links.* A card of the profile sends up to 85 MB/s and receives some 110. On its own links of 1280 Mbit/s, 160 MB/s, A
  and B would meet the limit of their receiver's card before that of the port. So links have 640 Mbit/s, the slower of
  Myrinet's two speeds. `link_mbit_per_s` sets them.
- *Demand.* Every flow wants `demand` = 0.45 of a link. Three of them are more than a link. B + C / 2 + D / 2 as well as
  A + B are 0.9 of one, so that what each wants after is there.

**The mechanism's own limit.** Rates are set at the sources, and the routers stay what they are. B suffers for as long
as a port that it crosses is asked for more than it carries. Regulating C and D to half of B's rate frees the link
between the routers. It frees nothing of A's and B's port and receiver. So B does not recover in these cases:

- with `demand=0.6`: B + C / 2 + D / 2 and A + B are 1.2 of a link, 23.8 MB/s before and after;
- with `demand=1`: behind C's or D's packet B's next one comes to router 1 just after A's, which never leaves a gap;
- with `link_mbit_per_s=1280`: A and B want 143 MB/s of a receiver that takes in 113.8, 40.0 before, 40.4 after.

Then A and B need rates, too: `after` has those of all four. With `demand=0.6`, `after=[0.45, 0.45, 0.225, 0.225]` does
it; with `link_mbit_per_s=1280`, `after=[0.33, 0.33, 0.165, 0.165]`. The claims on the time after are judged where the
rates leave a tenth of every link, and of what a receiver takes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Self

from lanikai.hdl.config import Config, NicConfig, preset
from lanikai.hdl.packet import packet_flits
from pydantic import Field, FiniteFloat, model_validator

from ..published import source
from ..units import KB, MB
from .framework.base import Claim, Experiment, Outcome, Point, Size, within
from .framework.charts import bandwidth_bars
from .measure.gm_flows import BANDWIDTH_TOLERANCE, Flow, bandwidths, measure_window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["WormholeUnfairness", "WormholeUnfairnessParameters"]

FLOWS = "ABCD"
NEAR, FAR = 3, 4
"""Nodes on the router of B, C and D, and on the router of A and all receivers."""
WAYS = ((3, 4), (0, 4), (1, 5), (2, 6))
"""Source and target node of A, B, C and D."""
SUFFERS = 0.9
"""B suffers if it has less than this part of what A has."""
ROOM = 0.9
"""The part of a link, and of a receiver's intake, that rates may ask for and still be met."""
RECEIVES_MB_PER_S = 113.8
"""A card's intake from two senders, measured: `lanikai run share-receiver --set "idt_over_T=[[1.5,1.5]]"`."""
WARM_UP_CYCLES = 120_000
"""A message of 64 KB over a third of a link takes 80 000 cycles."""
WINDOW_CYCLES = {"quick": 400_000, "full": 1_200_000}
"""The shorter one holds 26 packets of a regulated flow."""


Rate = Annotated[FiniteFloat, Field(ge=0.01, le=1.0)]


class WormholeUnfairnessParameters(Config):
    """Parameters of wormhole-unfairness."""

    link_mbit_per_s: int = Field(640, ge=100, le=2112, description="speed of every link, Mbit/s")
    demand: FiniteFloat = Field(
        0.45,
        ge=0.3,
        le=1.0,
        description="bandwidth that every flow wants, as a part of a link's",
        json_schema_extra={"range": "0.3 to 1"},
    )
    after: list[Rate] = Field(
        [],
        description="rates of A, B, C and D after, as parts of a link's; empty: A's and B's demand, C and D half of it",
        json_schema_extra={"range": f"list of {len(FLOWS)} parts, each 0.01 to 1"},
    )
    message_bytes: int = Field(64 * KB, ge=1, le=256 * KB, description="bytes of a message")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.after and len(self.after) != len(FLOWS):
            raise ValueError(f"after has {len(self.after)} rates: one for each of A, B, C and D, or none")
        return self

    @property
    def rates_after(self) -> list[float]:
        """The rates of A, B, C and D after, as parts of a link's."""
        return self.after or [self.demand, self.demand, self.demand / 2, self.demand / 2]


def link_rate(parameters: WormholeUnfairnessParameters) -> Fraction:
    """The rate of a link, flits a cycle."""
    nic = preset(NicConfig, "lanai4")
    return Fraction(parameters.link_mbit_per_s * 1_000_000, nic.link.flit_bits * nic.clock_hz)


def packet_cycles(parameters: WormholeUnfairnessParameters) -> Fraction:
    """Cycles that a packet of an MTU takes on a link."""
    nic = preset(NicConfig, "lanai4")
    return packet_flits(nic.mtu_bytes, nic.link) / link_rate(parameters)


def link_mb_per_s(parameters: WormholeUnfairnessParameters) -> float:
    """The bandwidth of a link, MB/s of payload."""
    nic = preset(NicConfig, "lanai4")
    return nic.mtu_bytes * nic.clock_hz / float(packet_cycles(parameters)) / MB


def asks_too_much(parameters: WormholeUnfairnessParameters) -> str:
    """The words for a link or receiver that the rates after ask too much of: more than there is with some room. They
    are empty if there is none."""
    a, b, c, d = parameters.rates_after
    full = link_mb_per_s(parameters)
    slack = 1e-9
    if b + c + d > ROOM + slack:
        return f"B, C and D ask for {b + c + d:.2f} of the link between the routers"
    if a + b > ROOM + slack:
        return f"A and B ask for {a + b:.2f} of the port to their receiver"
    if (a + b) * full > RECEIVES_MB_PER_S:
        return f"A and B ask for {(a + b) * full:.0f} MB/s of a receiver that takes in {RECEIVES_MB_PER_S}"
    return ""


class WormholeUnfairness(Experiment):
    """Four flows over two routers, before and after two of them are regulated."""

    name = "wormhole-unfairness"
    asks = (
        "Does a flow over two switches get its share of the ports, and does regulating its neighbours help?"
    )
    source = source("wormhole-unfairness")
    entry = "lanikai.sim.experiments.wormhole_unfairness:measure"
    Parameters = WormholeUnfairnessParameters
    by_flow = ("idt_ticks", "bandwidth_mb_per_s")

    def points(self, parameters: WormholeUnfairnessParameters, size: Size) -> list[Point]:
        """Before, and after C and D are regulated."""
        ticks = packet_cycles(parameters) / preset(NicConfig, "lanai4").tick_cycles
        before, after = (
            [round(float(ticks) / rate) for rate in rates]
            for rates in ([parameters.demand] * len(FLOWS), parameters.rates_after)
        )
        return [
            Point(
                label=label,
                parameters={
                    "regulated": label == "after",
                    "idt_ticks": idts,
                    "message_bytes": parameters.message_bytes,
                },
                spec={
                    "idt_ticks": idts,
                    "message_bytes": parameters.message_bytes,
                    "warm_up_cycles": WARM_UP_CYCLES,
                    "window_cycles": WINDOW_CYCLES[size],
                },
            )
            for label, idts in (("before", before), ("after", after))
        ]

    def cluster(self, parameters: WormholeUnfairnessParameters) -> Any:
        """Two routers in a row."""
        from ..systems.cluster import cluster_preset

        config, rate = cluster_preset("lanai4"), link_rate(parameters)
        link = config.nic.link.replace(rate_num=rate.numerator, rate_den=rate.denominator)
        return config.replace(
            nodes=NEAR + FAR,
            chain=(NEAR, FAR),
            nic=config.nic.replace(link=link),
            router=config.router.replace(link=link),
        )

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth of A, B, C and D; payload on the link between the routers, and at A's and B's port. Both are parts
        of what a link carries."""
        found = bandwidths(measured)
        full = link_mb_per_s(parameters)
        return {
            "bandwidth_mb_per_s": found,
            "middle_link_use": sum(found[1:]) / full,
            "shared_port_use": sum(found[:2]) / full,
        }

    def claims(self, parameters: WormholeUnfairnessParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims of the two figures, each where the rates are such as it is about."""
        if len(outcomes) < 2:
            return [
                Claim.unjudged("what A, B, C and D have before and after", "not both of the points have run")
            ]
        before, after = (one.results["bandwidth_mb_per_s"] for one in outcomes)
        a, b, c, d = parameters.rates_after
        scarce = ""
        if parameters.demand * SUFFERS * 3 <= 1:
            scarce = f"B, C and D want {3 * parameters.demand:.2f} of a link: too little for B to suffer"
        limit = asks_too_much(parameters)
        return [
            Claim(
                text="before: the router serves B, C and D in turn, they get the same (within 3%)",
                holds=before[1] > 0 and within(before[1:], [sum(before[1:]) / 3] * 3, BANDWIDTH_TOLERANCE),
            ),
            Claim(
                text=f"before: B suffers behind two routers, it has less than {SUFFERS:.0%} of what A has: "
                f"{before[1]:.1f} of {before[0]:.1f} MB/s",
                holds=0 < before[1] < SUFFERS * before[0],
            ).unless(scarce),
            Claim(
                text=f"after: B does not suffer, it has what A has (within 3%): {before[1]:.1f} MB/s before, "
                f"{after[1]:.1f} after",
                holds=within(after[1], after[0], BANDWIDTH_TOLERANCE) and after[1] > before[1],
            ).unless(limit or scarce or ("" if a == b else "A and B have different rates after")),
            Claim(
                text="after: C and D have half of what B has (within 3%)",
                holds=after[1] > 0 and within(after[2:], [after[1] / 2] * 2, BANDWIDTH_TOLERANCE),
            ).unless(limit or ("" if c == d == b / 2 else "C and D do not have half of B's rate after")),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """A group of bars before, and one after."""
        bandwidth_bars(
            figure,
            outcomes,
            [
                f"{one.point.label}\nIDTs {', '.join(map(str, one.point.parameters['idt_ticks']))}"
                for one in outcomes
            ],
            x_label="before and after C and D are regulated; IDTs in ticks",
            title="Unfairness of a wormhole network, eased by rate control",
            flow_names=FLOWS,
        )


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    flows = [
        # A and B have a port each at their receiver.
        Flow(
            source=way[0],
            target=way[1],
            target_port=number,
            message_bytes=spec["message_bytes"],
            idt_ticks=idt,
        )
        for number, (way, idt) in enumerate(zip(WAYS, spec["idt_ticks"], strict=True))
    ]
    return await measure_window(cluster, flows, spec)
