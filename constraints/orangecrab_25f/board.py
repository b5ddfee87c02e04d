"""OrangeCrab r0.2 (Good Stuff Department), with a 48 MHz clock, a button and an LED; the variant with an LFE5U-25F."""

from ..from_amaranth import AmaranthBoard

__all__ = ["OrangeCrab"]


class OrangeCrab(AmaranthBoard):
    """The button resets, pin 5 of the header is data. Its USB is the FPGA's own. So the serial line is at the header's
    pins 0 (in) and 1 (out), for an adapter of 3.3 V."""

    platform = "orangecrab_r0_2:OrangeCrabR0_2_25FPlatform"
    reset_button = ("button", 0)
    data_button = ("io", 0, "5")
    uart_pins = (("io", 0, "0"), ("io", 0, "1"))
    header_attributes = {"IO_TYPE": "LVCMOS33"}
    led_resource = "rgb_led"
