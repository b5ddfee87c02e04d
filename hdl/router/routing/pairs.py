"""VLs that are pairs, two for each class of packets."""

from __future__ import annotations

from ...config import ConfigError, RouterConfig

__all__ = ["check_pairs"]


def check_pairs(config: RouterConfig) -> None:
    """Raises ConfigError for an odd number of VLs."""
    if config.link.vls % 2:
        raise ConfigError(
            f"LinkConfig.vls = {config.link.vls}: {config.routing} routing needs an even number, 2 to 14: two for each "
            "class"
        )
