"""Lanikai from Python: run experiments, networks and clusters, and get Polars frames. `docs/api.md` has all of it.

A name is imported when it is first used, so that `import lanikai.hdl` needs neither a simulator nor these.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.cluster import Cluster as Cluster
    from .api.cluster import ClusterRun as ClusterRun
    from .api.errors import Error as Error
    from .api.errors import ProgramError as ProgramError
    from .api.experiments import experiments as experiments
    from .api.experiments import parameters as parameters
    from .api.experiments import run as run
    from .api.extensions import register as register
    from .api.hardware import synthesize as synthesize
    from .api.hardware import verilog as verilog
    from .api.host import Host as Host
    from .api.network import Network as Network
    from .api.network import NetworkRun as NetworkRun
    from .api.network import Traffic as Traffic
    from .api.results import Run as Run
    from .api.results import load as load

_PLACES = {
    "Cluster": "cluster",
    "ClusterRun": "cluster",
    "Error": "errors",
    "Host": "host",
    "Network": "network",
    "NetworkRun": "network",
    "ProgramError": "errors",
    "Run": "results",
    "Traffic": "network",
    "experiments": "experiments",
    "load": "results",
    "parameters": "experiments",
    "register": "extensions",
    "run": "experiments",
    "synthesize": "hardware",
    "verilog": "hardware",
}
"""Each public name, and the module of `lanikai.api` that has it."""

__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    """A public name, from its module. Raises AttributeError for any other, with the nearest of them."""
    if name in _PLACES:
        found = getattr(import_module(f"{__name__}.api.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
    from difflib import get_close_matches

    close = get_close_matches(name, _PLACES, n=1)
    hint = f"; did you mean {close[0]!r}?" if close and not name.startswith("_") else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(_PLACES)
