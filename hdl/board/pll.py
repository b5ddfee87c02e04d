"""A slower clock than the board's, by the PLL of an ECP5."""

from __future__ import annotations

from amaranth import Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError

__all__ = ["Ecp5Pll"]

VCO_HZ = 600_000_000
"""Aim of the oscillator inside: the middle of its range, 400 to 800 MHz (Lattice FPGA-DS-02012, sysCLOCK PLL)."""
LEAST_PHASE_HZ = 10_000_000
"""Slowest clock that the phase detector compares, from the same table."""


class Ecp5Pll(wiring.Component):
    """Divides a clock by a whole number.

    Members: `clock_in` (in), `clock_out` (out), `locked` (out): the output is steady.

    Parameters: `from_hz` and `to_hz`. Raises ConfigError unless the one is a multiple of the other that the PLL can
    make. Latency: none, as it is a clock. Throughput: none. Reset: none.
    """

    def __init__(self, *, from_hz: int, to_hz: int) -> None:
        if from_hz % to_hz or to_hz < LEAST_PHASE_HZ or from_hz // to_hz > 128:
            raise ConfigError(
                f"clock_hz = {to_hz}: the board's {from_hz} Hz divided by 1 to 128, and at least {LEAST_PHASE_HZ}"
            )
        self._divide, self._multiply = from_hz // to_hz, round(VCO_HZ / to_hz)
        super().__init__({"clock_in": In(1), "clock_out": Out(1), "locked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The output itself is compared with the divided input: one period of it is one of the divided input.
        m.submodules.pll = Instance(
            "EHXPLLL",
            p_CLKI_DIV=self._divide,
            p_CLKFB_DIV=1,
            p_CLKOP_DIV=self._multiply,
            p_CLKOP_CPHASE=self._multiply // 2 - 1,
            p_CLKOP_FPHASE=0,
            p_CLKOP_ENABLE="ENABLED",
            p_FEEDBK_PATH="CLKOP",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            i_CLKI=self.clock_in,
            i_CLKFB=self.clock_out,
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=0,
            i_PHASESTEP=0,
            i_PHASELOADREG=0,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=self.clock_out,
            o_LOCK=self.locked,
        )
        return m
