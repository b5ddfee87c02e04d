"""share-senders: flows of one sender share its bandwidth in the inverse ratio of their IDTs.

gulati-thesis-2001 5.4.1, figures 5.5 and 5.6: two or three flows leave one node for a node each, with 64 KB messages.
So they meet in the sender's card and nowhere else. Each setting is one point.

**The window.** Deliveries are counted packet by packet, all flows together. The dispatch pattern of flows that share in
the ratio of whole numbers repeats after a *round*. It has as many packets as the numbers add up to (2T, 4T, 4T: 2 + 1 +
1 = 4 packets). The window opens after a warm-up of whole rounds and is a whole number of rounds long, from one delivery
to another. So every flow has the same count in it wherever in the round it opens. The shares are exact except for the
rounding of the ratio itself, held below `ROUND_ERROR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from lanikai.hdl.config import Config, NicConfig, preset
from pydantic import Field, FiniteFloat, model_validator

from ..published import source, table
from ..units import KB
from .framework.base import Claim, Outcome, Point, Size
from .measure.flows_experiment import FlowsExperiment, published_setting
from .measure.gm_flows import T_TICKS, Flow, idt_ticks, inverse_idt_claims, proportions
from .measure.gm_hosts import NODES, patient

__all__ = ["ShareSenders", "ShareSendersParameters", "round_counts"]

PUBLISHED = table("share-senders")
ROUND_ERROR = 0.002
"""Relative: the most that a flow's whole number of packets in a round may be from its exact proportion."""
ROUND_PACKETS_MAX = 2000
"""Longest round that is run: 0.1 s of simulated time."""
WINDOW_PACKETS = {"quick": 120, "full": 1000}
"""Least number of packets in the window, all flows together."""
WARM_UP_PACKETS = 32
"""Least number of packets before the window. The connection queue, the staging buffers and both DMA engines of sender
and receivers have all turned over several times by then."""


def round_counts(idts_ticks: Sequence[int], message_packets: int = 1) -> list[int]:
    """Packets of each flow in the shortest round that fits. `idts_ticks` are positive.

    Every flow's count in it is within `ROUND_ERROR` of its 1/IDT proportion and a multiple of `message_packets`. Raises
    ValueError if the round is longer than `ROUND_PACKETS_MAX`.
    """
    shares = proportions(idts_ticks)
    for packets in range(1, ROUND_PACKETS_MAX // message_packets + 1):
        counts = [round(packets * share) for share in shares]
        total = sum(counts)
        errors = [abs(one - total * share) for one, share in zip(counts, shares, strict=True)]
        if all(counts) and all(
            error <= ROUND_ERROR * total * share for error, share in zip(errors, shares, strict=True)
        ):
            return [one * message_packets for one in counts]
    raise ValueError(
        f"its pattern takes more than {ROUND_PACKETS_MAX} packets to repeat; choose IDTs whose ratios are "
        "smaller or rounder, or message_bytes a multiple of 4096"
    )


def unequal_packets(message_bytes: int) -> int:
    """Packets after which the sizes of a flow's packets repeat: 1 if all are the MTU's, else a message's."""
    mtu = preset(NicConfig, "lanai4").mtu_bytes
    return 1 if message_bytes % mtu == 0 else -(-message_bytes // mtu)


class ShareSendersParameters(Config):
    """Parameters of share-senders; the defaults are the published set-up."""

    idt_over_T: list[list[FiniteFloat]] = Field(
        default=PUBLISHED["idt_over_T"],
        min_length=1,
        max_length=64,
        description="settings, a list of flows each: IDT of every flow in units of T = 96 ticks",
        json_schema_extra={"range": "list of settings, each a list of 1 to 16 IDTs in units of T = 96 ticks"},
    )
    message_bytes: int = Field(
        PUBLISHED["message_bytes"], ge=1, le=256 * KB, description="bytes of a message"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        nic = preset(NicConfig, "lanai4")
        for number, setting in enumerate(self.idt_over_T):
            if not setting:
                raise ValueError(f"idt_over_T[{number}] is empty: a setting has 1 to {nic.flows} flows")
            if len(setting) > nic.flows:
                raise ValueError(
                    f"idt_over_T[{number}] has {len(setting)} flows: the rate control unit holds {nic.flows}"
                )
            for flow, idt in enumerate(setting):
                # Ticks are more than units of T: so large a number need not be multiplied, which may overflow.
                if abs(idt) > nic.max_idt_ticks or not 1 <= idt_ticks(idt) <= nic.max_idt_ticks:
                    raise ValueError(
                        f"idt_over_T[{number}][{flow}] = {idt:g}: an IDT is 1 to {nic.max_idt_ticks} ticks, "
                        f"{1 / T_TICKS:.4f} to {nic.max_idt_ticks // T_TICKS} in units of T"
                    )
            try:
                round_counts([idt_ticks(idt) for idt in setting], unequal_packets(self.message_bytes))
            except ValueError as error:
                raise ValueError(f"idt_over_T[{number}] = {setting}: {error}") from None
        return self


class ShareSenders(FlowsExperiment):
    """Flows of one sender, a receiver each."""

    name = "share-senders"
    asks = "Do the flows of one sender share its bandwidth in the inverse ratio of their IDTs?"
    source = source("share-senders")
    Parameters = ShareSendersParameters
    by_flow = ("idt_over_T", "idt_ticks", "bandwidth_mb_per_s", "share")
    x_label = f"IDT of the flows (T = {T_TICKS} ticks)"
    title = "Flows of one sender share in the inverse ratio of their IDTs"

    def points(self, parameters: ShareSendersParameters, size: Size) -> list[Point]:
        """A point a setting: flow f goes from node 0 to node f + 1. A setting that was published has its published
        bandwidths beside it."""
        return [self._point(parameters, setting, size) for setting in parameters.idt_over_T]

    def _point(self, parameters: ShareSendersParameters, setting: list[float], size: Size) -> Point:
        from lanikai.firmware.gm.config import GmConfig

        idts, length = [idt_ticks(idt) for idt in setting], parameters.message_bytes
        in_round = sum(round_counts(idts, unequal_packets(length)))
        ports = GmConfig.for_nic(preset(NicConfig, "lanai4")).ports
        return self.point(
            "IDT " + " ".join(f"{idt:.3g}T" for idt in setting),
            {"idt_over_T": setting, "idt_ticks": idts, "message_bytes": length, "flows": len(setting)},
            flows=[
                Flow(source=0, source_port=flow % ports, target=flow + 1, message_bytes=length, idt_ticks=idt)
                for flow, idt in enumerate(idts)
            ],
            window={
                "warm_up_packets": -(-WARM_UP_PACKETS // in_round) * in_round,
                "window_packets": -(-WINDOW_PACKETS[size] // in_round) * in_round,
            },
            published=published_setting(PUBLISHED, setting) if length == PUBLISHED["message_bytes"] else None,
        )

    def cluster(self, parameters: ShareSendersParameters) -> Any:
        """The sender and as many receivers as the setting with the most flows has; some may stay idle."""
        from ..systems.cluster import cluster_preset

        config = cluster_preset("lanai4")
        nodes = max(NODES, 1 + max(map(len, parameters.idt_over_T)))
        if nodes > 1 << config.nic.link.hop_bits:
            # A hop of the source route must be able to name every port.
            link = config.nic.link.replace(hop_bits=(nodes - 1).bit_length())
            config = config.replace(
                nic=config.nic.replace(link=link), router=config.router.replace(link=link)
            )
        longest = max(idt_ticks(idt) for setting in parameters.idt_over_T for idt in setting)
        return patient(config.replace(nodes=nodes), longest)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth and share of each flow over the window, and the window's length."""
        return super().results(parameters, point, measured) | {
            "window_cycles": measured["window_cycles"],
            "window_packets": point.spec["window_packets"],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claim, on every setting that was run, published or not."""
        return inverse_idt_claims(outcomes)
