"""The broken claims of wrr-variants."""

from __future__ import annotations

from .broken import Broken

__all__ = ["WRR_BROKEN"]

FAST_ALONE = 'variants=["small_fast"]'
SHORT = {"window_cycles": 80_000}
"""Eight frames of each stream, in which what is broken is far more than chance."""
WRR_BROKEN = (
    Broken(
        experiment="wrr-variants",
        mutant="deadlines are half a frame early",
        settings=(FAST_ALONE, "loads=[0.6]"),
        claims=("DMP is within a factor", "DMT is within a factor"),
        size="full",
        # DMP is judged in the full size alone; the second frame of each stream shows it.
        spec={"window_cycles": 416_667},
    ),
    Broken(
        experiment="wrr-variants",
        mutant="frames of the large table come ever later",
        settings=('variants=["small_slow", "large_fast"]', "loads=[0.7]"),
        claims=("where DMPs are distinct",),
        spec=SHORT,
    ),
    Broken(
        experiment="wrr-variants",
        mutant="frames of the small table come ever later",
        settings=('variants=["small_fast", "large_fast"]', "loads=[0.8]"),
        claims=(
            "where DMTs are distinct",
            "times the DMT of the small frame with the fast pointer",
            "rounding of weights does no harm",
        ),
        spec=SHORT,
    ),
    Broken(
        experiment="wrr-variants",
        mutant="frames come ever later at high load",
        settings=(FAST_ALONE, "loads=[0.6, 0.8]"),
        claims=("DMP does not grow",),
        spec=SHORT,
    ),
    Broken(
        experiment="wrr-variants",
        mutant="frames come ever later at low load",
        settings=(FAST_ALONE, "loads=[0.6, 0.8]"),
        claims=("DMT grows",),
        spec=SHORT,
    ),
    Broken(
        experiment="wrr-variants",
        mutant="every tenth message of a stream is forgotten",
        settings=(FAST_ALONE, "loads=[0.6]"),
        claims=("and so do control packets",),
        spec=SHORT,
    ),
    Broken(
        experiment="wrr-variants",
        mutant="hosts send with a wrong key",
        settings=(FAST_ALONE, "loads=[0.2]"),
        claims=("every request was answered",),
        spec=SHORT,
    ),
)
