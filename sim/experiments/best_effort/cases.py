"""The points of best-effort (gulati-thesis-2001 5.6).

Each says who sends to whom, who comes and goes when, and what was published of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...published import table
from ..measure.gm_flows import T_TICKS, ideal_mb_per_s

__all__ = ["CASES", "PEAK_MB_PER_S", "REST", "Case", "CaseFlow", "Stage", "case_named"]

PolicyName = Literal["set_aside", "max_min"]
REST = float("inf")
"""Request for all that is left."""


@dataclass(frozen=True, kw_only=True)
class CaseFlow:
    """A flow of a point. `mb_per_s` is its request: None for a best-effort flow, `REST` for what is left."""

    name: str
    source: int = 0
    target: int
    mb_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage: flows (by place in the list) that end, then flows that begin."""

    name: str
    ends: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A point: its `name` and `label`, its `flows` and `stages`, how best-effort flows share (`policy`), and the
    `published` bandwidths."""

    name: str
    label: str
    flows: tuple[CaseFlow, ...]
    stages: tuple[Stage, ...]
    policy: PolicyName = "set_aside"
    published: Mapping[str, Any] = field(default_factory=dict)


PUBLISHED = table("best-effort")
ONE, TWO = PUBLISHED["one_best_effort"], PUBLISHED["two_best_effort"]
PEAK_MB_PER_S = ideal_mb_per_s(T_TICKS)
P1, P2 = ONE["premium_mb_per_s"]
ALONE, BESIDE_ONE, BESIDE_TWO = (
    PEAK_MB_PER_S,
    *(ONE["best_effort_mb_per_s"][key] for key in ("first", "both")),
)
EACH, EACH_BESIDE = (TWO["best_effort_each_mb_per_s"][key] for key in ("none", "premium"))
SHARING: tuple[tuple[PolicyName, str], ...] = (
    ("set_aside", "sharing as in 4.3"),
    ("max_min", "max-min sharing"),
)
CASES = (
    Case(
        name="one",
        label="figure 5.11: one best-effort flow",
        flows=(
            CaseFlow(name="best effort", target=1),
            CaseFlow(name="premium 1", target=2, mb_per_s=P1),
            CaseFlow(name="premium 2", target=3, mb_per_s=P2),
        ),
        stages=(
            Stage(name="none", begins=(0,)),
            Stage(name="first", begins=(1,)),
            Stage(name="both", begins=(2,)),
            Stage(name="second", ends=(1,)),
            Stage(name="none_again", ends=(2,)),
        ),
        # Bandwidths of the flows in their order; 0: not active.
        published={
            "none_mb_per_s": [ALONE, 0.0, 0.0],
            "first_mb_per_s": [BESIDE_ONE, P1, 0.0],
            "both_mb_per_s": [BESIDE_TWO, P1, P2],
            "packets_per_1000_ticks_first": ONE["packets_per_1000_ticks_first"],
        },
    ),
    Case(
        name="two",
        label="figure 5.12: two best-effort flows",
        flows=(
            CaseFlow(name="best effort 1", target=1),
            CaseFlow(name="best effort 2", target=2),
            CaseFlow(name="premium", target=3, mb_per_s=TWO["premium_mb_per_s"][0]),
        ),
        stages=(
            Stage(name="uncontended", begins=(0,)),
            Stage(name="none", begins=(1,)),
            Stage(name="premium", begins=(2,)),
            Stage(name="none_again", ends=(2,)),
            Stage(name="uncontended_again", ends=(0,)),
        ),
        published={
            "uncontended_mb_per_s": [ALONE, 0.0, 0.0],
            "none_mb_per_s": [EACH, EACH, 0.0],
            "premium_mb_per_s": [EACH_BESIDE, EACH_BESIDE, TWO["premium_mb_per_s"][0]],
        },
    ),
    *(
        Case(
            name=policy,
            label=label,
            policy=policy,
            flows=(
                CaseFlow(name="best effort, held", target=1),
                CaseFlow(name="best effort", target=2),
                CaseFlow(name="premium", source=3, target=1, mb_per_s=70.0),
            ),
            stages=(Stage(name="premium", begins=(2, 0, 1)),),
        )
        for policy, label in SHARING
    ),
    Case(
        name="full",
        label="a node that is promised whole",
        flows=(
            CaseFlow(name="best effort", target=1),
            CaseFlow(
                name="premium in",
                source=1,
                target=0,
                mb_per_s=table("incoming-rate")["point"]["incoming_mb_per_s"],
            ),
            CaseFlow(name="premium 1", target=2, mb_per_s=30.0),
            CaseFlow(name="premium 2", target=3, mb_per_s=REST),
        ),
        stages=(Stage(name="full", begins=(1, 2, 3, 0)),),
    ),
)
"""The points, in their order."""


def case_named(name: str) -> Case:
    """The case `name`."""
    return next(case for case in CASES if case.name == name)
