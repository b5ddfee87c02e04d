"""The plot of `faults`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..framework.base import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(outcomes: Sequence[Outcome], figure: Figure) -> None:
    """For each system, the parts of the packets or messages that arrive, across the link and elsewhere, by fault."""
    systems = list(dict.fromkeys(one.point.spec["system"] for one in outcomes))
    for place, system in enumerate(systems):
        axes = figure.add_subplot(len(systems), 1, place + 1)
        here = [one for one in outcomes if one.point.spec["system"] == system]
        for shift, (prefix, label) in enumerate(
            (
                ("", "across the link that fails"),
                ("others_", "elsewhere"),
                ("after_", "all, link sound again"),
            )
        ):
            parts = [
                one.results[f"{prefix}delivered"] / one.results[f"{prefix}offered"]
                if one.results[f"{prefix}offered"]
                else 0.0
                for one in here
            ]
            axes.bar(
                [i + (shift - 1) * 0.27 for i in range(len(here))],
                parts,
                width=0.25,
                color=f"C{shift}",
                label=label if place == 0 else None,
            )
        names = [one.point.parameters["kind"].replace("_", "\n") for one in here]
        axes.set_xticks(range(len(here)), names, fontsize="small")
        axes.set_ylabel("delivered / offered")
        axes.set_title(f"{system}: {'packets' if system == 'network' else 'messages'}")
    figure.legend(loc="outside lower center", ncols=3)
