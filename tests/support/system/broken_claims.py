"""The registry of broken claims: for each claim of each experiment a mutant (`mutants.py`) that makes it false.

`Broken.claims` are parts of the claims' texts: of the texts in the code, without numbers that are put in.
"""

from __future__ import annotations

from collections.abc import Callable

from lanikai.sim.experiments.framework.base import Point

from .admission_broken_claims import ADMISSION_BROKEN
from .am_broken_claims import AM_BROKEN
from .broken import Broken, place
from .cosched_broken_claims import COSCHED_BROKEN
from .fault_broken_claims import FAULT_BROKEN
from .power_broken_claims import POWER_BROKEN
from .qos_broken_claims import QOS_BROKEN
from .via_broken_claims import VIA_BROKEN
from .workload_broken_claims import WORKLOAD_BROKEN
from .wrr_broken_claims import WRR_BROKEN

__all__ = ["BROKEN", "Broken", "page"]


def _sizes(*lengths: int) -> Callable[[Point], bool]:
    return lambda point: point.parameters["message_bytes"] in lengths


SHARED = ("bandwidth is shared in the inverse ratio of the IDT values",)
HELD = "a premium flow has what it was promised"
PACED = "its card paces it by the IDT that it was granted"
GRANTED = "a film that always has a frame ready has what it was granted"
ARRIVES = "of a film on its clock all that was due arrives"
IN_TIME = "every frame arrives within the time that the grant states"
FOLLOWS = "the packet rate of a best-effort flow follows"
BROKEN = (
    Broken(
        experiment="rate-table",
        mutant="rate registers take every idt for one slot",
        claims=("packets are dispatched in the ratio",),
    ),
    Broken(
        experiment="share-senders",
        mutant="idts are ignored",
        claims=SHARED,
        settings=("idt_over_T=[[3, 6]]",),
    ),
    Broken(
        experiment="share-senders",
        mutant="no change of connection",
        settings=("idt_over_T=[[2.0, 2.0]]",),
        outside=True,
    ),
    Broken(experiment="share-receiver", mutant="idts are ignored", claims=SHARED),
    Broken(experiment="share-receiver", mutant="receiving is slow", outside=True),
    Broken(experiment="share-receiver", mutant="senders die", claims=SHARED, outside=True),
    Broken(
        experiment="share-bidir",
        mutant="idts are ignored",
        claims=("the outgoing bandwidth is shared", "the incoming flow keeps"),
    ),
    Broken(experiment="share-bidir", mutant="idts are 2 ticks long", claims=("the incoming flow keeps",)),
    Broken(experiment="share-bidir", mutant="no change of direction", outside=True),
    Broken(experiment="share-bidir", mutant="senders die", outside=True),
    Broken(
        experiment="idt-sweep",
        mutant="idts are 2 ticks long",
        claims=("ticks and more the bandwidth is a packet every IDT",),
        settings=("idt_ticks=[0, 48, 144]",),
    ),
    Broken(
        experiment="idt-sweep",
        mutant="idts are 130 ticks at the least",
        claims=("ticks the bandwidth equals that of an unregulated flow",),
        settings=("idt_ticks=[0, 48, 144]",),
    ),
    Broken(
        experiment="idt-sweep",
        mutant="senders die",
        claims=("ticks and more the bandwidth is a packet every IDT",),
        settings=("idt_ticks=[0, 96]",),
        outside=True,
    ),
    Broken(
        experiment="idt-sweep",
        mutant="a packet is made in half the time",
        settings=("idt_ticks=[0]",),
        outside=True,
    ),
    Broken(
        experiment="incoming-rate",
        mutant="half a change of direction",
        settings=("idt_ticks=[500]",),
        outside=True,
    ),
    Broken(
        experiment="incoming-rate",
        mutant="the search tries nothing",
        claims=("flow 1 has at least",),
        settings=("idt_ticks=[96]",),
    ),
    Broken(
        experiment="incoming-rate",
        mutant="the incoming flow has one idt",
        claims=(
            "peak outgoing bandwidth falls",
            "the sum of both is not constant",
            "a receive costs the card less than a send",
        ),
        settings=("idt_ticks=[250, 500]",),
    ),
    Broken(
        experiment="fair-queueing",
        mutant="messages in turn are packets in turn",
        claims=("message by message, flows get",),
        keep=place("discipline", "message"),
    ),
    Broken(
        experiment="fair-queueing",
        mutant="packets in turn are messages in turn",
        claims=("packet by packet, all flows get the same",),
        keep=place("discipline", "packet"),
    ),
    Broken(
        experiment="fair-queueing",
        mutant="an unregulated flow comes late",
        claims=("so they do when the rate control unit chooses",),
        keep=place("discipline", "rate_controlled"),
    ),
    Broken(
        experiment="rate-overhead",
        mutant="the unit is slow",
        claims=(
            "latency grows by less than",
            "bandwidth falls by less than",
            "and by at most",
            "for some message sizes the rate-controlled version is the faster one",
            "with the same segmentation the run with the unit",
        ),
        keep=_sizes(4096, 46341),
    ),
    Broken(
        experiment="wormhole-unfairness",
        mutant="node 1 has twice the idts",
        claims=("before: the router serves B, C and D in turn", "after: C and D have half of what B has"),
    ),
    Broken(
        experiment="wormhole-unfairness",
        mutant="node 3 has twice the idts",
        claims=("before: B suffers behind two routers", "after: B does not suffer"),
    ),
    Broken(experiment="best-effort", mutant="premium idts are not set", claims=(HELD, PACED)),
    Broken(experiment="best-effort", mutant="idts are 2 ticks long", claims=(PACED,)),
    Broken(experiment="best-effort", mutant="shares are not set", claims=(FOLLOWS,)),
    Broken(
        experiment="best-effort",
        mutant="best effort flows are always held",
        claims=("an uncontended best-effort flow sends at peak rate",),
    ),
    Broken(
        experiment="best-effort",
        mutant="flows have unequal weights",
        claims=("is shared equally by two best-effort flows",),
    ),
    Broken(
        experiment="best-effort",
        mutant="reservations are not given back",
        claims=("the best-effort flows have what they had", "nothing is held at the end"),
    ),
    Broken(
        experiment="best-effort", mutant="max min sets aside", claims=("beyond the thesis: max-min sharing",)
    ),
    Broken(
        experiment="mpi-idt",
        mutant="idts are ignored",
        claims=("and more the MPI level has a packet every IDT",),
        settings=("idt_ticks=[140, 250]",),
    ),
    Broken(
        experiment="mpi-idt",
        mutant="copies cost nothing",
        claims=("the MPI level's bandwidth is flat", "it is in the range of"),
        settings=("idt_ticks=[96, 120]",),
    ),
    Broken(
        experiment="mpi-idt",
        mutant="a packet is made in twice the time",
        claims=("GM's goes on rising below",),
        settings=("idt_ticks=[96, 120]",),
    ),
    Broken(
        experiment="mpi-share",
        mutant="idts are ignored",
        claims=("two MPI flows of one node share", "each has a packet every IDT"),
        settings=("idt_ticks=[[140, 420]]",),
    ),
    Broken(
        experiment="mpi-share",
        mutant="idts are 2 ticks long",
        claims=("each has a packet every IDT",),
        settings=("idt_ticks=[[140, 420]]",),
    ),
    Broken(
        experiment="mpi-replay",
        mutant="senders die",
        claims=("a competing flow slows the program", "it is the reservation that does it"),
    ),
    Broken(
        experiment="mpi-replay",
        mutant="no reservation is made",
        claims=("with a reservation it takes what it takes alone", "the reserved flow has its IDT"),
    ),
    Broken(
        experiment="mpi-replay",
        mutant="a member is throttled whoever reserves",
        claims=("it is the reservation that does it", "the reserved flow has its IDT"),
    ),
    Broken(
        experiment="mpi-replay", mutant="premium idts are not set", claims=("the reserved flow has its IDT",)
    ),
    Broken(
        experiment="mpi-replay", mutant="idts are ignored", claims=("it does it by the competing flow's IDT",)
    ),
    Broken(
        experiment="mpi-replay",
        mutant="reservations give a sixteenth",
        claims=("the reservation alone costs it no more",),
    ),
    Broken(
        experiment="mpi-replay",
        mutant="a program beside another sends less",
        claims=("the same messages are sent every time",),
    ),
    Broken(
        experiment="video-reservation",
        mutant="packets are charged in place of bytes",
        claims=(GRANTED, ARRIVES, IN_TIME),
        keep=place("case", "always", "clock"),
    ),
    Broken(
        experiment="video-reservation",
        mutant="premium idts are not set",
        claims=(GRANTED,),
        keep=place("case", "always"),
    ),
    Broken(
        experiment="video-reservation",
        mutant="idts are 4 percent long",
        claims=(GRANTED,),
        keep=place("case", "always"),
    ),
    Broken(
        experiment="video-reservation",
        mutant="films stop",
        claims=(GRANTED, ARRIVES, IN_TIME),
        keep=place("case", "always", "clock"),
    ),
    Broken(
        experiment="video-reservation",
        mutant="bytes are charged in place of packets",
        claims=("control: where packets are charged",),
        keep=place("case", "packets"),
    ),
    Broken(
        experiment="video-reservation",
        mutant="nothing competes",
        claims=("control: without a reservation a film is late",),
        keep=place("case", "nothing"),
    ),
    Broken(
        experiment="transfer",
        mutant="a received byte is wrong",
        claims=("the file arrives byte for byte",),
        settings=("file=FILE",),
    ),
    Broken(
        experiment="rate-accuracy",
        mutant="flow 0 has a thousand times its idt",
        claims=("with room on the link every flow's rate", "flows share it within", "no flow is starved"),
        settings=("flows=[16]",),
    ),
    Broken(
        experiment="rate-accuracy",
        mutant="every flow has ten times its idt",
        claims=("it is in use",),
        settings=("flows=[16]", "loads=[1.5]"),
    ),
    Broken(
        experiment="dma-bandwidth",
        mutant="a queue is slower than none",
        claims=("of the peak in transfers of", "a queue never slows it down"),
        settings=("transfer_bytes=[4096]",),
    ),
    Broken(
        experiment="doorbell-latency",
        mutant="a doorbell takes longer the higher its channel",
        claims=(
            "the hardware queue's latency does not depend",
            "the polled latency rises by half a look",
            "and linearly: no point is further",
        ),
        settings=("channels=[4, 16, 64]",),
    ),
    Broken(
        experiment="descriptor-fetch",
        mutant="each way moves other bytes",
        claims=("all three ways move the same bytes",),
        settings=("message_bytes=[128]", "bursts=[1]"),
    ),
    Broken(
        experiment="descriptor-fetch",
        mutant="descriptors are always fetched",
        claims=("a shadow is sooner than a fetched descriptor", "in bursts a tailgated descriptor is sooner"),
        settings=("message_bytes=[128]", "bursts=[2]"),
    ),
    Broken(
        experiment="descriptor-fetch",
        mutant="tailgating costs every message",
        claims=("a message alone is fetched, tailgating or not",),
        settings=("message_bytes=[128]", "bursts=[1]"),
    ),
    *VIA_BROKEN,
    Broken(
        experiment="network-load",
        mutant="sinks lose a fifth",
        claims=("a network that is not saturated accepts what is offered",),
        settings=("loads=[0.1]", "allocator=separable"),
    ),
    Broken(
        experiment="network-load",
        mutant="wavefront loses half",
        claims=("with the wavefront allocator", "the wavefront allocator accepts no less"),
        settings=("loads=[1.0]", "allocator=separable,wavefront"),
    ),
    Broken(
        experiment="vl-isolation",
        mutant="the flood takes every vl",
        claims=("on VLs of its own the well-behaved class",),
        settings=("vl_arbiter=round_robin",),
    ),
    Broken(
        experiment="vl-isolation",
        mutant="the flood is a trickle",
        claims=("on the flood's VLs the well-behaved class is saturated",),
        settings=("vl_arbiter=round_robin",),
    ),
    Broken(
        experiment="wrr-shares",
        mutant="a table has equal weights",
        claims=("the shares are within",),
        settings=("variants=small_fast",),
    ),
    Broken(
        experiment="wrr-shares",
        mutant="vls send little",
        claims=("what idle VLs leave goes to the others",),
        settings=("variants=small_fast",),
    ),
    *AM_BROKEN,
    *COSCHED_BROKEN,
    *FAULT_BROKEN,
    *POWER_BROKEN,
    *ADMISSION_BROKEN,
    *QOS_BROKEN,
    *WORKLOAD_BROKEN,
    *WRR_BROKEN,
)
"""All of them; `test_claims.py` runs each, and looks that no claim is without one."""


def page() -> str:
    """The table of `docs/results.md`, as Markdown."""
    lines = ["| experiment | claim | does not hold when |", "|---|---|---|"]
    for one in BROKEN:
        claims = [f"*... {claim} ...*" for claim in one.claims]
        claims += ["a published value is met"] if one.outside else []
        lines += [f"| `{one.experiment}` | {claim} | {one.mutant} |" for claim in claims]
    return "\n".join(lines) + "\n"
