"""Valiant's routing: by way of a place that is chosen at random, whatever the load (Valiant 1982)."""

from __future__ import annotations

from .places import ButterflyDetour, CubeDetour, DragonflyDetour, MeshDetour, TorusDetour

__all__ = [
    "DragonflyValiantRouting",
    "FlattenedButterflyValiantRouting",
    "HypercubeValiantRouting",
    "TorusValiantRouting",
    "ValiantRouting",
]


class ValiantRouting(MeshDetour):
    """On a mesh by a router chosen at random."""


class TorusValiantRouting(TorusDetour):
    """On a torus by a router chosen at random."""


class HypercubeValiantRouting(CubeDetour):
    """On a hypercube by a router chosen at random."""


class FlattenedButterflyValiantRouting(ButterflyDetour):
    """On a flattened butterfly by a router chosen at random."""


class DragonflyValiantRouting(DragonflyDetour):
    """On a dragonfly by another group chosen at random."""
