"""share-receiver: flows of several senders to one receiver get the bandwidths that their IDTs say.

gulati-thesis-2001 5.4.2, figure 5.7: two flows leave a node each for the same node. They meet at the router's output
port and in the receiver's card. Both senders pace themselves, and nothing but the pacing divides the receiver's
bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, FiniteFloat, model_validator

from ..published import source, table
from ..units import KB
from .framework.base import Claim, Outcome, Point, Size
from .measure.flows_experiment import FlowsExperiment, published_setting
from .measure.gm_flows import MAX_IDT_TICKS, T_TICKS, Flow, idt_ticks, inverse_idt_claims
from .measure.gm_hosts import NODES

__all__ = ["ShareReceiver", "ShareReceiverParameters"]

PUBLISHED = table("share-receiver")
RECEIVER = 0
WARM_UP_CYCLES = 60_000
"""Nearly two messages of a lone flow."""
WINDOW_CYCLES = {"quick": 500_000, "full": 3_000_000}
"""The window. The shorter one holds 31 packets of the published slow flow. A delivery waits for at most one other
packet, 1600 cycles: 0.3% of it."""


class ShareReceiverParameters(Config):
    """Parameters of share-receiver; the defaults are the published set-up."""

    idt_over_T: list[list[FiniteFloat]] = Field(
        default=PUBLISHED["idt_over_T"],
        min_length=1,
        max_length=64,
        description=f"settings, a list of flows each: IDT of every sender's flow in units of T = {T_TICKS} ticks",
        json_schema_extra={"range": f"list of settings, each a list of 1 to {NODES - 1} IDTs"},
    )
    message_bytes: int = Field(64 * KB, ge=1, le=256 * KB, description="bytes of a message")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, setting in enumerate(self.idt_over_T):
            if not 1 <= len(setting) < NODES:
                raise ValueError(
                    f"idt_over_T[{number}] has {len(setting)} flows: a setting has 1 to {NODES - 1}"
                )
            for flow, idt in enumerate(setting):
                if not 1 <= idt_ticks(idt) <= MAX_IDT_TICKS:
                    raise ValueError(
                        f"idt_over_T[{number}][{flow}] = {idt:g}: an IDT is 1 to {MAX_IDT_TICKS} ticks, "
                        f"{1 / T_TICKS:.4f} to {MAX_IDT_TICKS / T_TICKS:.2f} in units of T"
                    )
        return self


class ShareReceiver(FlowsExperiment):
    """Flows to one receiver, a sender each."""

    name = "share-receiver"
    asks = "Do flows of several senders share their one receiver in the inverse ratio of their IDTs?"
    source = source("share-receiver")
    Parameters = ShareReceiverParameters
    by_flow = ("idt_over_T", "idt_ticks", "bandwidth_mb_per_s", "share")
    x_label = f"IDT of the flows (T = {T_TICKS} ticks)"
    title = "Flows to one receiver share in the inverse ratio of their IDTs"

    def points(self, parameters: ShareReceiverParameters, size: Size) -> list[Point]:
        """A point a setting: flow f goes from node f + 1 to port f of the receiver."""
        return [self._point(parameters, setting, size) for setting in parameters.idt_over_T]

    def _point(self, parameters: ShareReceiverParameters, setting: list[float], size: Size) -> Point:
        idts, length = [idt_ticks(idt) for idt in setting], parameters.message_bytes
        return self.point(
            "IDT " + " ".join(f"{idt:.3g}T" for idt in setting),
            {"idt_over_T": setting, "idt_ticks": idts, "message_bytes": length},
            flows=[
                Flow(source=flow + 1, target=RECEIVER, target_port=flow, message_bytes=length, idt_ticks=idt)
                for flow, idt in enumerate(idts)
            ],
            window={"warm_up_cycles": WARM_UP_CYCLES, "window_cycles": WINDOW_CYCLES[size]},
            published=published_setting(PUBLISHED, setting) if length == 64 * KB else None,
        )

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claim, on every setting that was run, published or not."""
        return inverse_idt_claims(outcomes)
