"""Configuration of the RTL: one frozen, validated model a part, each fact declared once.

- `base`: the class of every configuration, and its one-line errors.
- `link`, `router`, `nic`, `hca`: the configurations.
- `profiles`: named presets of them.
"""

from .base import Config, ConfigError, one_line
from .hca import HcaConfig
from .link import HEADER_BITS, ROUTE_BITS, WORD_ROUTE_BITS, LinkConfig
from .nic import NicConfig
from .profiles import Aim, aim, preset, preset_names
from .router import SERVICE_LEVELS, RouterConfig

__all__ = [
    "HEADER_BITS",
    "ROUTE_BITS",
    "SERVICE_LEVELS",
    "WORD_ROUTE_BITS",
    "Aim",
    "Config",
    "ConfigError",
    "HcaConfig",
    "LinkConfig",
    "NicConfig",
    "RouterConfig",
    "aim",
    "one_line",
    "preset",
    "preset_names",
]
