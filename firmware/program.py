"""The protocol of a firmware program, which runs on a card's processors. `programs` has the programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

from lanikai.hdl.config import Config, ConfigError, NicConfig

from .costs import CostTable
from .ports import CardPorts, ProcessorPort

__all__ = ["FirmwareProgram"]

Settings = TypeVar("Settings", bound=Config)


class FirmwareProgram(ABC, Generic[Settings]):
    """The program of the card of one node. A subclass is one file (or folder), and one line in `PROGRAMS`.

    A class has:

    - `Config`: the class of its sizes and choices, a validated model that host software reads too.
    - `default_costs`: the cycles of its steps.
    - `speaks`: the name of the interface on which it and host software agree (rings, descriptors, doorbells). Programs
      that speak the same stand in for each other: a host interface runs with every one of them.

    An object takes these arguments, and spawns nothing before `start`:

    - `card`: the ports of the card's processors.
    - `node`, `nic`: the node's number, and the configuration of its card.
    - `routes`: node -> source route, of every node that can be reached.
    - `config`: None for `default_config`.
    - `costs`: None for `default_costs`.

    Raises ConfigError for a configuration of another program, and for a card that lacks something that it needs.

    A watchdog asks an object for `advanced_cycle` (the cycle in which it last moved something on), `pending`, `state`
    and `waiting`.
    """

    Config: ClassVar[type[Config]]
    default_costs: ClassVar[CostTable]
    speaks: ClassVar[str]

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: Settings | None = None,
        costs: CostTable | None = None,
    ) -> None:
        self.card, self.node, self.nic = card, node, nic
        self.routes = dict(routes)
        given: Any = self.default_config(nic) if config is None else config
        if not isinstance(given, self.Config):
            raise ConfigError(
                f"{type(self).__name__}: {type(given).__name__} is the configuration of another program; it takes "
                f"{self.Config.__name__}"
            )
        self.config = cast(Settings, given)
        self.costs = self.default_costs if costs is None else costs
        self.advanced_cycle = 0

    @classmethod
    def default_config(cls, nic: NicConfig) -> Any:
        """Its configuration on a card for which none is given."""
        return cls.Config()

    @abstractmethod
    def start(self) -> None:
        """Spawn its coroutines with `spawn` of a processor's port; returns at once.

        They share a `Processor`, whose steps pay for what they do. One of them ends in its `idle_loop`, which sleeps
        until an event, reads ISR, and wakes who waits; a program that looks at ISR by itself needs none.
        """

    @property
    @abstractmethod
    def pending(self) -> int:
        """The number of things that it has still to do: 0 if it may well rest."""

    @abstractmethod
    def state(self) -> list[str]:
        """Its state, a line each: the things that it holds and waits for."""

    @abstractmethod
    def waiting(self) -> list[str]:
        """Its waits, a few words each; none if it rests."""

    def only_processor(self) -> ProcessorPort:
        """The port of the card's processor.

        Raises ConfigError for a card with two processors, as each of them has half of the events.
        """
        if len(self.card.processors) != 1:
            raise ConfigError(
                f"{type(self).__name__}: it runs on one processor, the card has {len(self.card.processors)}: set "
                "NicConfig.processors = 1"
            )
        return self.card.processors[0]
