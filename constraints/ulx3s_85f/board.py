"""ULX3S (Radiona), an open board with a 25 MHz clock, buttons and eight LEDs; the variant with an LFE5U-85F."""

from ..from_amaranth import AmaranthBoard

__all__ = ["Ulx3s85F"]


class Ulx3s85F(AmaranthBoard):
    """Button FIRE 1 resets, FIRE 2 is data."""

    platform = "ulx3s:ULX3S_85F_Platform"
    reset_button = ("button_fire", 0)
    data_button = ("button_fire", 1)
