"""Every number of the model that was fitted to a published one.

Each says what it is fitted to, and which of the model's predictions it thereby takes away. The table in
`docs/results.md` is made of this. A number that is counted (instructions), measured on the RTL, or assumed is none of
these and says so where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FITTED", "Fit", "page"]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted number.

    - `name`: its name.
    - `where`: the file that it stands in.
    - `value`: its value in `unit`, read from there.
    - `to`: the published number that it is fitted to.
    - `spent`: results that say no more than that the fit is right.
    """

    name: str
    where: str
    value: Callable[[], float]
    unit: str
    to: str
    spent: str


def _cost(step: str) -> Callable[[], float]:
    def value() -> float:
        from lanikai.firmware.costs import GM_COSTS

        return GM_COSTS.cycles(step)

    return value


def _queue() -> float:
    from lanikai.firmware.costs import GM_COSTS

    return sum(GM_COSTS.cycles(step) for step in ("sdma_head", "sdma_link", "sdma_relink"))


def _shared() -> float:
    from .manager.capacity import SHARED_MB_PER_S

    return SHARED_MB_PER_S


def _copy() -> float:
    from .host.mpi.config import MpiCosts

    return MpiCosts().copy_ns_per_kb


def _svia(*steps: str) -> Callable[[], float]:
    def value() -> float:
        from lanikai.firmware.via.costs import SVIA_COSTS

        return sum(SVIA_COSTS.cycles(step) for step in steps)

    return value


def _parallel(table: str, step: str) -> Callable[[], float]:
    def value() -> float:
        from lanikai.firmware.via.parallel import costs

        found: float = getattr(costs, table).cycles(step)
        return found

    return value


def _line(name: str) -> Callable[[], float]:
    def value() -> float:
        from .models import pci_timing

        found: float = getattr(pci_timing, name)
        return found

    return value


def _via_host() -> float:
    from .experiments.via.cards import VIA_HOST

    return 2 * VIA_HOST.post_ns + VIA_HOST.miss_ns


def _am_host(name: str) -> Callable[[], float]:
    def value() -> float:
        from .host.am.config import AmHostConfig

        found: float = getattr(AmHostConfig(), name)
        return found

    return value


def _am_loop() -> float:
    from lanikai.firmware.am.costs import AM_COSTS

    return sum(AM_COSTS.cycles(step) for step in ("dispatch", "doorbell_look"))


def _imbalance() -> float:
    from .host.cosched.programs.program import IMBALANCE

    return 100 * IMBALANCE


COSTS = "firmware/costs.py"
AM_HOST = "sim/host/am/config.py"
VIA_COSTS = "firmware/via/costs.py"
PARALLEL_COSTS = "firmware/via/parallel/costs.py"
SVIA_SPENT = "`via-latency`: the 4 B and 4 KB columns of SVIA. Not: those of 1 KB and 16 KB"
FITTED = (
    Fit(
        name="sdma_packet",
        where=COSTS,
        value=_cost("sdma_packet"),
        unit="cycles",
        to="T = 96 ticks: a lone flow's packet every 48 us, 85.3 MB/s (5.3, figure 5.3)",
        spent="`idt-sweep`: the peak and the knee. Not: that both are one number, and 1/IDT above it",
    ),
    Fit(
        name="sdma_turn",
        where=COSTS,
        value=_cost("sdma_turn"),
        unit="cycles",
        to="two flows to two destinations, IDTs 2T and 2T: 2 x 40.91 MB/s (5.4.1, figure 5.5)",
        spent="`share-senders`: the sum of its first two settings, in which the queue turns alike",
    ),
    Fit(
        name="packet_turn",
        where=COSTS,
        value=_cost("packet_turn"),
        unit="cycles",
        to="65.0 MB/s out beside 16.37 in (5.3, figure 5.4); 5.4.3 and figure 5.8 share the same number in two",
        spent="`incoming-rate`: its published point. `share-bidir`: the sum of what goes out, in both points",
    ),
    Fit(
        name="sdma_head + sdma_link + sdma_relink",
        where=COSTS,
        value=_queue,
        unit="cycles",
        to="an overhead of less than 1% (5.2): set to what the accesses to the rate control unit take",
        spent="`rate-overhead`: that the programs are 0 cycles apart. Not: that the unit makes no packet wait",
    ),
    Fit(
        name="SHARED_MB_PER_S",
        where="sim/manager/capacity.py",
        value=_shared,
        unit="MB/s",
        to="what the runs of 5.6 add up to: 40 + 38, 40 + 20 + 18, 39 + 39, 20 + 29 + 29",
        spent="`best-effort`: 38, 18, 39 and 29 MB/s, and 4.7 packets, which are differences to it",
    ),
    Fit(
        name="copy_ns_per_kb",
        where="sim/host/mpi/config.py",
        value=_copy,
        unit="ns",
        to="the knee at IDT 140 (5.5.1, figure 5.9)",
        spent="`mpi-idt`: the knee, and the level of 53.3 MB/s, which follows from it for messages of 64 KB",
    ),
    *(
        Fit(
            name=" + ".join(steps),
            where=VIA_COSTS,
            value=_svia(*steps),
            unit="cycles",
            to=f"{to} (table 5.1, SVIA, 4 B and 4 KB)",
            spent=SVIA_SPENT,
        )
        for steps, to in (
            (("program_descriptor",), "3 us until the descriptor's host DMA is programmed, at either end"),
            (("ended",), "2 to 3 us for a descriptor down, 2 us for 4 bytes down or up"),
            (("process", "program_data"), "3 us until the host DMA of the data is programmed"),
            (("process_receive", "program_up"), "the same at the receiver"),
            (("page",), "0 (sent) and 1 us (received) more for 4 KB, which lie in two pages"),
            (("program_send",), "1 us for a packet of 4 bytes"),
            (("program_status", "status_done"), "1 to 2 us, and 1 us"),
        )
    ),
    Fit(
        name="post_ns + miss_ns",
        where="sim/experiments/via/cards.py",
        value=_via_host,
        unit="ns",
        to="one-way latency less the stages at both cards: 6 us (4 B), 8 us (4 KB) (table 5.1, SVIA); two posts",
        spent="`via-latency`: SVIA's one-way latency of 4 B and 4 KB. Not: of 1 KB and 16 KB, nor of PVIA and QoSVIA",
    ),
    *(
        Fit(
            name=step,
            where=PARALLEL_COSTS,
            value=_parallel(table, step),
            unit="cycles",
            to=f"{to} (table 5.1, {design}, 4 B and 4 KB)",
            spent=f"`via-latency`: the 4 B and 4 KB columns of {design}. Not: those of 1 KB and 16 KB",
        )
        for table, design, steps in (
            (
                "PVIA_COSTS",
                "PVIA",
                {
                    "prefetch": "one-way latency, which beside the stages has the other descriptor to receive",
                    "doorbell": "7 us until the descriptor's host DMA is programmed",
                    "host_ended": "4 us for a descriptor down, 0 to 4 beyond the data's own time",
                    "process": "8 us until the host DMA of the data is programmed",
                    "process_receive": "10 us until it is at the receiver",
                    "page": "4 us more for 4 KB, which lie in two pages",
                    "program_send": "5 us for a packet of 4 bytes",
                    "program_status": "5 us until the status is programmed",
                    "status_done": "5 us until it is done",
                },
            ),
            (
                "QOSVIA_COSTS",
                "QoSVIA",
                {
                    "stamp": "2 us more than PVIA until the descriptor's host DMA is programmed",
                    "program_data": "3 us more than PVIA until the data's is",
                    "program_up": "2 us more than PVIA at the receiver",
                    "page": "5 to 6 us more for 4 KB",
                    "status_done": "4 us until the status is done",
                },
            ),
        )
        for step, to in steps.items()
    ),
    *(
        Fit(
            name=name,
            where="sim/models/pci_timing.py",
            value=_line(name),
            unit="cycles",
            to=to,
            spent="`via-latency`: data of 4 KB at the sender and at the receiver, by SVIA. Not: of 1 KB and 16 KB",
        )
        for name, to in (
            ("LINE_READ_WAIT_CYCLES", "32 us more for 4 KB down than for 4 B (table 5.1, SVIA)"),
            ("LINE_WRITE_WAIT_CYCLES", "31 us more for 4 KB up than for 4 B (table 5.1, SVIA)"),
        )
    ),
    Fit(
        name="request_ns",
        where=AM_HOST,
        value=_am_host("request_ns"),
        unit="ns",
        to="o_send = 4.09 us (chun-1998 5.1), beside programmed I/O of 10 words",
        spent="`am-logp`: o_send",
    ),
    Fit(
        name="handle_ns",
        where=AM_HOST,
        value=_am_host("handle_ns"),
        unit="ns",
        to="o_recv = 4.28 us (chun-1998 5.1), beside programmed I/O of 12 words",
        spent="`am-logp`: o_recv",
    ),
    Fit(
        name="dispatch + doorbell_look",
        where="firmware/am/costs.py",
        value=_am_loop,
        unit="cycles",
        to="the gap of the baseline row, 9.60 us, with a latency of 10.36 us (chun-1998 5.1)",
        spent="`am-logp`: gap, latency and rtt of the baseline row. Not: what reliability and protection add",
    ),
    Fit(
        name="IMBALANCE",
        where="sim/host/cosched/programs/program.py",
        value=_imbalance,
        unit="%",
        to="83 s of Local scheduling of workload 10 (nagar-thesis-2001 table 6.6), with LIFE at 3.5% communication",
        spent="`cosched`: the completion time of Local in workload 10. Not: any other one",
    ),
)
"""All fitted numbers."""


def page() -> str:
    """The table, as Markdown."""
    lines = [
        "| number | in | value | fitted to | so these results tell nothing more |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{fit.name}` | `{fit.where}` | {fit.value():g} {fit.unit} | {fit.to} | {fit.spent} |"
        for fit in FITTED
    ]
    return "\n".join(lines) + "\n"
