"""ECPIX-5 (LambdaConcept), with a 100 MHz clock and a serial line over USB; the variant with an LFE5UM5G-85F."""

from ..from_amaranth import AmaranthBoard

__all__ = ["Ecpix5"]


class Ecpix5(AmaranthBoard):
    """The button that resets is the board's own; the first pin of header PMOD 0 is data. LEDs are the red ones."""

    platform = "ecpix5:ECPIX585Platform"
    reset_button = ("rst", 0)
    data_button = ("pmod", 0, "1")
    header_attributes = {"IO_TYPE": "LVCMOS33"}
    led_resource = "rgb_led"
