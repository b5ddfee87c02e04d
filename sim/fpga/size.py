"""The sizes of a design: what is its own on each board, and what a user may set."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from lanikai.hdl.board.config import LEAST_BAUD, MOST_BAUD, LineConfig
from lanikai.hdl.config import Config, ConfigError
from pydantic import Field

from ..errors import UserError
from ..experiments.framework.base import Experiment
from ..experiments.framework.parameters import parse

__all__ = ["BoardExperiment", "DesignSize"]


class BoardExperiment(Experiment):
    """An experiment on a design, of which a host sets what the design leaves open.

    `host_sets`: names of the parameters that a host may set.
    """

    host_sets: tuple[str, ...]

    @abstractmethod
    def parameters(self, settings: Sequence[str]) -> Any:
        """The parameters with `settings`, `key=value` each. Raises UserError, ConfigError for what the design cannot
        do."""


class DesignSize(Config):
    """Sizes of a design, its clock and its line. A subclass has `title` (the design's name), more fields, and the
    methods that are abstract here."""

    title: ClassVar[str]

    clock_hz: int = Field(25_000_000, ge=1_000_000, le=400_000_000, description="clock of the design, Hz")
    baud: int = Field(
        1_000_000, ge=LEAST_BAUD, le=MOST_BAUD, description="rate of the serial line, bits a second"
    )
    gap_cycles: int = Field(
        0, ge=0, description="silence that ends an unfinished request, clock cycles; 0: 50 ms"
    )

    @abstractmethod
    def design(self, label: str = "") -> LineConfig:
        """The design's configuration. Raises ConfigError."""

    def with_settings(self, settings: Sequence[str]) -> Self:
        """These sizes with `settings`, `key=value` each. Raises UserError."""
        given: Any = parse(_Settable(type(self)), settings)
        found = self.replace(**{name: getattr(given, name) for name in given.model_fields_set})
        try:
            found.design()
        except ConfigError as error:
            raise UserError(f"{self.title}: {error}") from None
        return found

    def settings(self, usual: Self) -> list[str]:
        """All that differs from `usual`, `key=value` each, as `with_settings` takes it."""
        return [
            f"{name}={json.dumps(getattr(self, name))}".replace('"', "").replace(" ", "")
            for name in type(self).model_fields
            if getattr(self, name) != getattr(usual, name)
        ]


class _Settable:
    """A name and a class of parameters, for `parse`."""

    def __init__(self, part: type[DesignSize]) -> None:
        self.name, self.Parameters = part.title, part
