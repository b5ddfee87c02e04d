"""The claims of `faults`, judged on all points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..framework.base import Claim, Outcome

__all__ = ["judge"]

SAME = 0.02
"""Relative: what other flows get beside a fault, against what they get without one. Traffic is the same in both."""


def _moves(one: Mapping[str, Any]) -> bool:
    """Whether there was traffic on both sides: without it nothing could be lost."""
    return one["delivered"] > 0 and one["others_delivered"] > 0


def judge(outcomes: Sequence[Outcome], *, vls: int) -> list[Claim]:
    """The claims. `vls`: VLs of a link of the network."""
    sound = {
        one.point.spec["system"]: one.results for one in outcomes if one.point.parameters["kind"] == "none"
    }
    faulty = [one for one in outcomes if one.point.parameters["kind"] != "none"]
    networks = [one.results for one in faulty if one.point.spec["system"] == "network"]
    clusters = [one.results for one in faulty if one.point.spec["system"] == "cluster"]
    return [
        Claim.every(
            "on a sound link nothing is lost, refused or begun anew, and no error is seen",
            (
                _moves(one)
                and one["delivered"] == one["offered"]
                and one["others_delivered"] == one["others_offered"]
                and not (
                    one["seen"] or one["refused"] or one["begun_anew"] or one["altered"] or one["dropped"]
                )
                for one in sound.values()
            ),
        ),
        Claim.every(
            f"flows that do not cross the link that fails go on, at the same rate to {SAME:.0%}",
            (
                _moves(one.results)
                and _moves(sound[one.point.spec["system"]])
                and abs(one.results["others_rate"] / sound[one.point.spec["system"]]["others_rate"] - 1)
                <= SAME
                for one in faulty
                if one.point.spec["system"] in sound
            ),
        ),
        Claim.every(
            "other flows of the network lose at most a packet a VL of each link that a guard begins anew",
            (
                _moves(one) and one["others_offered"] - one["others_delivered"] <= vls * one["begun_anew"]
                for one in networks
            ),
        ),
        Claim.every(
            "every message of the cluster's other flow arrives",
            (_moves(one) and one["others_delivered"] == one["others_offered"] for one in clusters),
        ),
        Claim.every(
            "no packet of the network that was hit is delivered as good (of a link that invents no flits: those come "
            "back to it as packets of their own)",
            (
                _moves(one) and one["delivered"] <= one["offered"] - one["packets_hit"]
                for one in networks
                if not one["invented"]
            ),
        ),
        Claim.every(
            "no message of the cluster is delivered with a wrong byte",
            (_moves(one) and one["wrong"] == 0 for one in clusters),
        ),
        Claim.every(
            "every packet of the network that is lost is seen: an error at a sink, or a router's drop",
            (
                _moves(one)
                and one["offered"] - one["delivered"] + one["others_offered"] - one["others_delivered"]
                <= one["seen"]
                for one in networks
            ),
        ),
        Claim.every(
            "every message of the cluster's flow across the link arrives, or its sender is told that it failed",
            (_moves(one) and one["delivered"] + one["seen"] == one["offered"] for one in clusters),
        ),
        Claim.every(
            "when the link is sound again all flows have all of their packets and messages",
            (one.results["after_delivered"] == one.results["after_offered"] > 0 for one in faulty),
        ),
    ]
