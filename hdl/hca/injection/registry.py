"""The policies of injection control by name."""

from __future__ import annotations

from .at_least_one import AtLeastOne
from .none import NoInjectionControl
from .policy import InjectionPolicy
from .self_tuned import SelfTuned

__all__ = ["INJECTION"]

INJECTION: dict[str, type[InjectionPolicy]] = {
    "none": NoInjectionControl,
    "alo": AtLeastOne,
    "self_tuned": SelfTuned,
}
"""The policies that `HcaConfig.injection` can name."""
