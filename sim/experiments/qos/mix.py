"""The mix of traffic that hosts of an adapter network send, and the network that it runs on (yum-2006 6.1, 6.2).

Plain Python, without the simulator: `mixed.measure` runs it.
"""

from __future__ import annotations

from math import log1p
from typing import Any, Literal, Self

from lanikai.hdl.config import Config, HcaConfig, RouterConfig, preset
from pydantic import Field, FiniteFloat, model_validator

from ...admission.config import MAX_UNITS, AdmissionConfig
from ...host.hca.credit import CREDITS
from ...systems.adapters.config import AdapterNetworkConfig
from ..measure.named_networks import named_network
from .messages import PACKET_FLITS
from .mpeg import FILMS

__all__ = [
    "ADMISSION",
    "BEST_EFFORT",
    "CLASSES",
    "CONTROL",
    "FRAME_CYCLES",
    "REAL_TIME",
    "Mix",
    "mixed_network",
    "on_off_peak",
]

CONTROL, REAL_TIME, BEST_EFFORT = CLASSES = "control", "real_time", "best_effort"
"""Traffic classes by name. The place of each is its number in the adapter; class 0 goes first."""
FRAME_CYCLES = 416_667
"""A thirtieth of a second, in flits' times of 80 ns (1.6 Gbit/s)."""
STREAM_UNITS = (5, 7, 8, 10, 12, 13, 15)
"""Mean rates of seven streams in units of 1/1020 of a link, 10 in the mean: 7.8 to 23.5 Mbit/s of 1.6 Gbit/s. The
document has seven traces and does not print their rates; an MPEG-2 stream of standard definition has about so much."""
_FOREVER_CYCLES = 1 << 40

ADMISSION = AdmissionConfig(
    link_sum="both_ways",
    answer_cycles=1_000_000,
    refresh_cycles=_FOREVER_CYCLES,
    lease_cycles=5 * _FOREVER_CYCLES,
)
"""Admission as these experiments have it:

- A link has one sum for both ways, as the words of 4.1 can be read. With a sum for each way nothing is refused at the
  document's loads, and it has 10 to 25% refused (docs/admission.md).
- VLs 0 to 10 are real-time ones, as for 80% of real time in 7.1.
- There are no refreshes: the document has none, and nothing fails in its runs.
- An answer may wait for tables that are written.
"""


class Mix(Config):
    """The traffic of every host, and the controls on it. `mixed.measure` takes it as its spec.

    A rate is a part of a link: flits a cycle.
    """

    load: FiniteFloat = Field(
        gt=0, le=1, description="real time and best effort together, flits a node and cycle"
    )
    real_time_share: FiniteFloat = Field(0.8, ge=0, le=1, description="part of the load that is real time")
    real_time: Literal["mpeg", "on_off"] = Field("mpeg", description="sources of real time")
    stream_units: tuple[int, ...] = Field(
        STREAM_UNITS,
        min_length=1,
        description="mean rates of streams, in units of admission.link_units; a host's streams take them in turn",
    )
    regulator: bool = Field(True, description="MPEG: a frame's packets are spread over its interval")
    frame_cycles: int = Field(FRAME_CYCLES, ge=100, description="MPEG: interval of frames")
    films: tuple[str, ...] = Field(FILMS, min_length=1, description="MPEG: films that streams show in turn")
    on_cycles: int = Field(10_000, ge=1, description="ON/OFF: mean ON time")
    off_cycles: int = Field(10_000, ge=1, description="ON/OFF: mean OFF time")
    packet_flits: int = Field(PACKET_FLITS, ge=4, le=40, description="longest packet")
    control_period_cycles: int = Field(
        0, ge=0, description="time in which each host sends ten control packets; 0: it sends none"
    )
    admission: bool = Field(
        True, description="streams ask for a connection; one that is refused sends nothing"
    )
    admission_config: AdmissionConfig = Field(
        ADMISSION, description="units, VLs and VL tables, with admission or without"
    )
    power_units: int | None = Field(
        None, ge=0, description="each router's budget of real time; None: no bound"
    )
    credits: str = Field(
        "none",
        description="credits of best effort; real time has them, too, if it is another policy than none",
    )
    credit_count: int = Field(200, ge=1, description="credits of best effort of a host (C_b)")
    buffer_messages: int = Field(
        1024, ge=1, description="messages that an adapter holds (M): a connection has b M / B credits"
    )
    retry_cycles: int = Field(
        400, ge=1, description="time after which a real-time message that was dropped is posted again"
    )
    warmup_cycles: int = Field(10_000, ge=0, description="time of traffic before the window")
    window_cycles: int = Field(50_000, ge=1, description="time that is measured")
    interval_cycles: int = Field(
        0, ge=0, description="time between two samples of the window; 0: none are taken"
    )
    setup: tuple[tuple[tuple[int, int, int], ...], ...] = Field(
        (), description="for each node words of set-up of its injection control: (`SetupKind`, node, value)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for units in self.stream_units:
            if not 1 <= units <= MAX_UNITS:
                raise ValueError(f"stream_units: {units}: 1 to {MAX_UNITS}")
        if self.credits not in CREDITS:
            raise ValueError(f"credits = {self.credits!r}: one of {', '.join(CREDITS)}")
        if self.load * (1 - self.real_time_share) > 0 and not self.best_effort_vls:
            raise ValueError("admission_config.real_time_vls: they leave no VL for best effort")
        return self

    @property
    def best_effort_vls(self) -> tuple[int, ...]:
        """The data VLs that are not real time's."""
        return self.admission_config.low_vls

    @property
    def real_time_units(self) -> float:
        """Units that the streams of a host have in all, as near as whole streams come to it."""
        return self.load * self.real_time_share * self.admission_config.link_units

    @property
    def best_effort_rate(self) -> float:
        """Flits of best effort a node and cycle."""
        return self.load * (1 - self.real_time_share)

    def spec(self) -> dict[str, Any]:
        """As plain JSON: the spec of a point."""
        return self.model_dump(mode="json")


def on_off_peak(
    *, rate: float, on_cycles: float, off_cycles: float, packet_flits: int = PACKET_FLITS
) -> float | None:
    """The peak rate with which `sources.on_off` has this mean rate; None if the ON time's first packet is already more.

    `on_off_rate` has 1 / (1 - exp(-gap / ON)) packets in a mean period, with a gap of packet / peak.
    """
    packets = rate * (on_cycles + off_cycles) / packet_flits
    if packets <= 1:
        return None
    return packet_flits / (on_cycles * -log1p(-1 / packets))


def mixed_network(
    name: str,
    *,
    vl_arbiter: str = "table_fast",
    injection: str = "none",
    power_control: bool = False,
    activity_counters: bool = False,
    adapter_counters: bool = False,
    **router: object,
) -> AdapterNetworkConfig:
    """The document's routers and adapters on the network `name` (`named_network`), as `mixed.measure` needs them.

    - `vl_arbiter`: of routers and adapters.
    - `injection`, `power_control`: of the adapters.
    - `adapter_counters`: `activity_counters` of the adapters.
    - `activity_counters` and others: fields of the routers.

    Raises ConfigError.
    """
    routers = preset(RouterConfig, "yum2006").replace(
        vl_arbiter=vl_arbiter, management=True, activity_counters=activity_counters, **router
    )
    adapters = preset(HcaConfig, "yum2006").replace(
        queue_pairs=8,
        completion_queues=8,
        regions=4,
        owners=2,
        classes=len(CLASSES),
        vl_arbiter=vl_arbiter,
        injection=injection,
        power_control=power_control,
        activity_counters=adapter_counters,
    )
    return AdapterNetworkConfig.on(named_network(name, routers), adapters)
