"""ECP5-5G Versa (Lattice), with a 100 MHz clock, eight LEDs, switches and a serial line over USB."""

from ..from_amaranth import AmaranthBoard

__all__ = ["Versa5G"]


class Versa5G(AmaranthBoard):
    """The button that resets is the board's own; switch 4 is data."""

    platform = "versa_ecp5_5g:VersaECP55GPlatform"
    reset_button = ("rst", 0)
    data_button = ("switch", 4)
