"""A flows experiment as small as one can be: two flows of one node, which share what it sends."""

from lanikai.hdl.config import Config
from lanikai.sim.experiments.framework.base import Claim, within
from lanikai.sim.experiments.measure.flows_experiment import FlowsExperiment
from lanikai.sim.experiments.measure.gm_flows import Flow
from pydantic import Field


class ToyParameters(Config):
    """The IDT of both flows."""

    idt_ticks: int = Field(200, ge=1, le=2000, description="IDT of each flow, ticks")


class ToyFlows(FlowsExperiment):
    """Two equal flows."""

    name = "toy-flows"
    asks = "Do two equal flows get the same?"
    source = "no document"
    Parameters = ToyParameters
    by_flow = ("bandwidth_mb_per_s", "share")
    x_label, title = "IDT (ticks)", "Two equal flows"

    def points(self, parameters, size):
        """One point."""
        idt = parameters.idt_ticks
        return [
            self.point(
                f"IDT {idt} {idt}",
                {"idt_ticks": idt},
                flows=[Flow(source=0, target=node, message_bytes=4096, idt_ticks=idt) for node in (1, 2)],
                window={"warm_up_packets": 8, "window_packets": 8},
                published={"share": [0.5, 0.5]},
            )
        ]

    def claims(self, parameters, outcomes):
        """Both get the same."""
        return [
            Claim.every(
                "both get the same", (within(one.results["share"], [0.5, 0.5], 0.01) for one in outcomes)
            )
        ]
