"""A host interface: the protocol of the ways in which host programs use a card. `interfaces` has those that there
are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lanikai.hdl.config import Config, NicConfig

from ..inside.deliveries import Observed
from .bus import HostBus

__all__ = ["HostInterface"]


class HostInterface(ABC):
    """The start of the library of one kind. A subclass is one file, and one line in `INTERFACES`.

    - `speaks`: the protocol that it and the card's firmware agree on. It runs with every program whose `speaks` is the
      same.
    - `Costs`: the class of the costs of its library's calls.

    The library's constructor checks its other needs of the card. All methods are of the class.
    """

    speaks: ClassVar[str]
    Costs: ClassVar[type[Config]]

    @classmethod
    @abstractmethod
    def on_node(
        cls, bus: HostBus, *, nic: NicConfig, routes: Mapping[int, int], config: Any, costs: Config | None
    ) -> Any:
        """Start the library on a node, whose firmware has been started with `config`. Returns the library.

        `routes`: node -> source route, of every node that can be reached. `costs`: of class `Costs`, None for its
        defaults. Raises ConfigError for a card that lacks something.
        """

    @classmethod
    def observed(cls, library: Any) -> Sequence[Observed]:
        """Parts of a node's library that the watchdog looks at, beside the firmware."""
        return ()

    @classmethod
    async def open(cls, libraries: Sequence[Any], nodes: Sequence[int], **settings: Any) -> list[Any]:
        """Prepare for a host program on each of `nodes`. Returns the object for each program, in their order: by
        default the node's library. Raises TypeError for settings that it does not have."""
        if settings:
            raise TypeError(f"{cls.__name__} has no settings: {', '.join(settings)}")
        return [libraries[node] for node in nodes]

    @classmethod
    def observed_program(cls, opened: Any) -> Sequence[Observed]:
        """Parts of one of the objects that `open` returned that the watchdog looks at, beside the libraries."""
        return ()
