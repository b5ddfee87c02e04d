"""Configuration of admission: units of bandwidth, frames of VL tables, times of the protocol."""

from __future__ import annotations

from typing import Literal, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

__all__ = ["MAX_UNITS", "AdmissionConfig"]

MAX_UNITS = 255
"""Most units of a connection: what the header's `bandwidth` of its last packet holds."""
DATA_VLS = 15


class AdmissionConfig(Config):
    """Admission in a network. All agents and hosts have the same.

    Bandwidths are whole units, so that sums have no rounding, and what is given back is what was taken.
    """

    link_units: int = Field(
        1020, ge=1, le=65535, description="bandwidth of a link one way, in units (B of the document)"
    )
    admitted_units: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="most that real-time connections may have of a link one way, sum of mean rates; None: all of it",
    )
    link_sum: Literal["each_way", "both_ways"] = Field(
        "each_way",
        description="what may not exceed the bandwidth of a link: what it carries one way, or both ways together",
    )
    real_time_vls: tuple[int, ...] = Field(tuple(range(11)), description="VLs of connections")
    frame: Literal["small", "large"] = Field(
        "small",
        description="frame of the VL tables: k times the real-time VLs, or as many flits as a table holds",
    )
    frame_factor: int = Field(4, ge=1, le=64, description="k of the small frame")
    table_entries: int = Field(
        64, ge=DATA_VLS, le=64, description="entries of a VL table; without a connection each data VL has one"
    )
    answer_cycles: int = Field(
        20_000, ge=1, description="wait for an answer before a probe or release is sent again"
    )
    attempts: int = Field(
        4, ge=1, le=100, description="probes or releases that are sent before the source gives up"
    )
    refresh_cycles: int = Field(
        100_000, ge=1, description="time between two refreshes of a connection that is open"
    )
    refresh_misses: int = Field(
        3, ge=1, le=100, description="refreshes in a row without an answer after which a connection is lost"
    )
    lease_cycles: int = Field(
        600_000, ge=2, description="time after which an agent gives back what was not refreshed"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.admitted_units is not None and self.admitted_units > self.link_units:
            raise ValueError(
                f"admitted_units = {self.admitted_units}: at most link_units = {self.link_units}"
            )
        vls = self.real_time_vls
        if not vls or list(vls) != sorted(set(vls)) or not 0 <= vls[0] <= vls[-1] < DATA_VLS:
            raise ValueError(
                f"real_time_vls = {vls}: at least one data VL, 0 to {DATA_VLS - 1}, in rising order"
            )
        least = (self.refresh_misses + 2) * self.refresh_cycles
        if self.lease_cycles < least:
            raise ValueError(
                f"lease_cycles = {self.lease_cycles}: at least {least}, (refresh_misses + 2) x refresh_cycles, so that "
                "a source gives up before its lease ends"
            )
        return self

    @property
    def most_units(self) -> int:
        """The most that connections may have of a link one way."""
        return self.link_units if self.admitted_units is None else self.admitted_units

    @property
    def low_vls(self) -> tuple[int, ...]:
        """The data VLs that are no connections'."""
        return tuple(vl for vl in range(DATA_VLS) if vl not in self.real_time_vls)

    @property
    def large_frame(self) -> int:
        """Flits of the large frame: 255 for each entry but N - 1 of them, with N real-time VLs.

        The document has 255 x 64. But each VL's last entry is rarely full. With N VLs, weights that add up to
        255 x (64 - N + 1) need 64 entries at most, and those of 255 x 64 up to 64 + N - 1.
        """
        return 255 * (self.table_entries - len(self.real_time_vls) + 1)
