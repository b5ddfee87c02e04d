"""The broken claims of admission-mesh and admission-cluster."""

from __future__ import annotations

from .broken import Broken

__all__ = ["ADMISSION_BROKEN"]

SHORT = {"warmup_cycles": 2_000, "window_cycles": 6_000}
"""Cycles of points in which what is broken is far more than chance."""
FRAME, QUICK_FRAME = 416_667, 41_667
ADMISSION_BROKEN = (
    Broken(
        experiment="admission-mesh",
        mutant="agents refuse nothing",
        settings=("loads=[0.7]", 'schemes=["both"]'),
        claims=("rejection rates with admission are within",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="links are half as wide with credits",
        settings=("loads=[0.7]", 'schemes=["both", "admission"]'),
        claims=("congestion control changes no rejection rate",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="half of the streams are refused by nobody",
        settings=("loads=[0.4]", 'schemes=["none"]'),
        claims=("without admission no connection is rejected",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="arrivals are late with both controls",
        settings=("loads=[0.4]",),
        claims=("real-time latency is lowest with both", "best-effort latency is lowest with both"),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="arrivals are late with admission alone",
        settings=("loads=[0.4]",),
        claims=("latencies are highest without any control", "at the lowest load admission alone has lower"),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="arrivals are late with congestion control alone",
        settings=("loads=[0.4, 0.5]",),
        claims=("at the highest load congestion control alone has lower",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="control packets are late without controls",
        settings=("loads=[0.4]", 'schemes=["admission", "none"]'),
        claims=("admission changes the latency of control packets less",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-mesh",
        mutant="best effort has credits without end",
        settings=("loads=[0.7]", 'schemes=["congestion"]'),
        claims=("messages wait for a credit with congestion control alone",),
    ),
    Broken(
        experiment="admission-mesh",
        mutant="hosts send with a wrong key",
        settings=("loads=[0.4]", 'schemes=["none"]'),
        claims=("every request was answered, and every message that ended did so without an error",),
        spec=SHORT,
    ),
    Broken(
        experiment="admission-cluster",
        mutant="frames are late with both controls",
        settings=("loads=[0.6]", 'schemes=["both"]', f"frame_cycles={FRAME}"),
        claims=("DMP is within", "DMT is within"),
        outside=True,
        # The third frame in the window is late.
        spec={"warmup_cycles": 0, "window_cycles": 5 * FRAME},
    ),
    Broken(
        experiment="admission-cluster",
        mutant="frames are late with both controls",
        settings=("loads=[0.8]", 'schemes=["both", "none"]'),
        claims=("without controls DMP and DMT are higher",),
        spec={"warmup_cycles": 2 * QUICK_FRAME, "window_cycles": 6 * QUICK_FRAME},
    ),
    Broken(
        experiment="admission-cluster",
        mutant="frames are late at a load of 80 percent",
        settings=('schemes=["both"]',),
        claims=("DMP does not grow from the lowest to the highest load",),
        spec={"warmup_cycles": 2 * QUICK_FRAME, "window_cycles": 6 * QUICK_FRAME},
    ),
    Broken(
        experiment="admission-cluster",
        mutant="arrivals are late with both controls",
        settings=("loads=[0.6]", 'schemes=["both", "none"]'),
        claims=(
            "best-effort latency is lower with both",
            "at the highest load best effort is",
            "control latency is lower with both",
        ),
        spec={"warmup_cycles": QUICK_FRAME, "window_cycles": QUICK_FRAME},
    ),
    Broken(
        experiment="admission-cluster",
        mutant="best effort has credits without end",
        settings=("loads=[0.8]", 'schemes=["congestion"]'),
        claims=("messages wait for a credit with congestion control alone",),
        spec={"warmup_cycles": QUICK_FRAME, "window_cycles": FRAME},
    ),
    Broken(
        experiment="admission-cluster",
        mutant="hosts send with a wrong key",
        settings=("loads=[0.6]", 'schemes=["none"]'),
        claims=("every request was answered, and every message that ended did so without an error",),
        spec=SHORT,
    ),
)
