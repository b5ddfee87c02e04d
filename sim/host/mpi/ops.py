"""Operations of allreduce: element by element, commutative and associative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LAND", "LOR", "MAX", "MIN", "PROD", "SUM", "Operation"]


@dataclass(frozen=True)
class Operation:
    """An operation: its `name`, and the numpy function of two arrays."""

    name: str
    function: Any

    def apply(self, first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The result, in the type of `first`."""
        return np.asarray(self.function(first, second)).astype(first.dtype, copy=False)


SUM = Operation("sum", np.add)
PROD = Operation("prod", np.multiply)
MIN = Operation("min", np.minimum)
MAX = Operation("max", np.maximum)
LAND = Operation("land", np.logical_and)
LOR = Operation("lor", np.logical_or)
