"""VLs that are groups, of the same size for each class of packets."""

from __future__ import annotations

from ....config import ConfigError, RouterConfig

__all__ = ["check_groups"]

_NEEDS = {2: "an even number, 2 to 14: two", 4: "4, 8 or 12: four"}


def check_groups(config: RouterConfig, size: int) -> None:
    """Raises ConfigError for a number of VLs that is not groups of `size`, 2 or 4."""
    if config.link.vls % size:
        raise ConfigError(
            f"LinkConfig.vls = {config.link.vls}: {config.routing} routing needs {_NEEDS[size]} for each class"
        )
