"""iCEBreaker (1BitSquared), with an iCE40UP5K, a 12 MHz clock, one button, two LEDs and a serial line over USB."""

from ..from_amaranth import AmaranthBoard

__all__ = ["IceBreaker"]


class IceBreaker(AmaranthBoard):
    """The button resets, the first pin of header PMOD 1A is data."""

    platform = "icebreaker:ICEBreakerPlatform"
    reset_button = ("button", 0)
    data_button = ("pmod", 0, "1")
    header_attributes = {"IO_STANDARD": "SB_LVCMOS"}
