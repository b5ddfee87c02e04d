"""The errors of the API, and how they are shown: without the frames of ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lanikai.hdl.config import ConfigError
from lanikai.sim.errors import LanikaiError as Error
from lanikai.sim.errors import SimulationError, UserError

__all__ = ["Error", "ProgramError", "plain"]

P = ParamSpec("P")
R = TypeVar("R")


class ProgramError(SimulationError):
    """A coroutine of the user's failed in the simulation. The message has its line, and the lines of the user's code
    that led there (`lines`)."""

    @classmethod
    def of(cls, error: SimulationError) -> ProgramError:
        """The error of a simulation, with the user's lines below the first line."""
        made = cls("\n".join([str(error).partition(" (log: ")[0], *error.lines]))
        made.lines = error.lines
        return made


def plain(function: Callable[P, R]) -> Callable[P, R]:
    """A public call whose errors of the user's have no frames of ours. A wrong configuration is an `Error`, too."""

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except ConfigError as error:
            raise UserError(str(error)) from None
        except SimulationError as error:
            if error.lines and not isinstance(error, ProgramError):
                raise ProgramError.of(error) from None
            raise error.with_traceback(None) from None
        except Error as error:
            raise error.with_traceback(None) from None

    return call
