"""Switch allocators: one file each, one registry.

A new one is a file with a subclass of `Allocator`, and a line in `ALLOCATORS`.
"""

from __future__ import annotations

from ...config import ConfigError, RouterConfig
from ...registry import Registry, class_problem
from .allocator import Allocator
from .islip import IslipAllocator
from .separable import SeparableAllocator
from .wavefront import WavefrontAllocator

__all__ = ["ALLOCATORS", "Allocator", "allocator_class"]

ALLOCATORS = Registry[type[Allocator]]("allocators", "switch allocator", class_problem(Allocator)) | {
    "separable": SeparableAllocator,
    "islip": IslipAllocator,
    "wavefront": WavefrontAllocator,
}
"""The allocators that `RouterConfig.allocator` can name."""


def allocator_class(config: RouterConfig) -> type[Allocator]:
    """The allocator of a router. Raises ConfigError with the valid names."""
    name = config.allocator
    if name not in ALLOCATORS:
        raise ConfigError(f"RouterConfig.allocator = {name!r}: one of {', '.join(sorted(ALLOCATORS))}")
    return ALLOCATORS[name]
