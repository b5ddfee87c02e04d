"""A board: the protocol of what places a block needs to know of it. `boards` has those that there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Board", "Pin"]


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin of the FPGA: its `site` on the package, the buffer's `attributes` (`IO_TYPE`, `PULLMODE`), and whether what
    is at it is asserted when it is low (`inverted`)."""

    site: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    inverted: bool = False


class Board(ABC):
    """A board with an FPGA. A subclass is one file, and one line in `BOARDS`; all properties are constants."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The FPGA as its maker names it, `LFE5U-85F`."""

    @property
    @abstractmethod
    def package(self) -> str:
        """Its package as its maker names it, `BG381`."""

    @property
    @abstractmethod
    def speed(self) -> str:
        """Its speed grade, `6`."""

    @property
    @abstractmethod
    def clock_hz(self) -> int:
        """Frequency of the board's clock."""

    @property
    @abstractmethod
    def clock(self) -> Pin:
        """Where the clock comes in."""

    @property
    @abstractmethod
    def reset(self) -> Pin:
        """A button that resets the design while it is pressed."""

    @property
    @abstractmethod
    def data(self) -> Pin:
        """A button, a switch or a pin of a header, whose state a design may take in."""

    @property
    @abstractmethod
    def uart_rx(self) -> Pin:
        """Where a serial line comes in."""

    @property
    @abstractmethod
    def uart_tx(self) -> Pin:
        """Where a serial line goes out."""

    @property
    @abstractmethod
    def leds(self) -> Sequence[Pin]:
        """Light-emitting diodes, one at least."""
