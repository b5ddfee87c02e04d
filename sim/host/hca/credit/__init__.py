"""Credits by which a host keeps messages back from its adapter (yum-2006 4.2, 4.3): policies, by name.

A new policy is a file with a `CreditPolicy`, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.hdl.config import ConfigError

from .gate import DroppingGate, WaitingGate
from .global_queue import GlobalCredits
from .no_limit import NoCredits
from .policy import CreditPolicy
from .quadrant import QuadrantCredits
from .separate import SeparateCredits
from .shares import initial_credits

__all__ = ["CREDITS", "CreditPolicy", "DroppingGate", "WaitingGate", "find_credits", "initial_credits"]

CREDITS: Mapping[str, type[CreditPolicy]] = {
    "none": NoCredits,
    "global": GlobalCredits,
    "separate": SeparateCredits,
    "quadrant": QuadrantCredits,
}
"""The classes, by name."""


def find_credits(name: str) -> type[CreditPolicy]:
    """The policy `name`. Raises ConfigError with the names that there are."""
    if name not in CREDITS:
        raise ConfigError(f"unknown policy of credits {name!r}; valid policies: {', '.join(CREDITS)}")
    return CREDITS[name]
