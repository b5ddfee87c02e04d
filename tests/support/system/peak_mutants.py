"""Mutants of what `peak-power` stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mutant import mutant

__all__: list[str] = []


def _late(scheme: str, kind: str, cycles: int) -> Any:
    """Arrivals of a class are noted so many cycles late, if the point has the scheme."""

    def change(spec: Mapping[str, Any]) -> None:
        from lanikai.sim.experiments.qos.mixed_host import MixedHost

        if spec["scheme"] != scheme:
            return
        right = MixedHost.received

        def received(self: Any, arrival: Any) -> None:
            if self._under_way[arrival.born].kind == kind:
                arrival = arrival._replace(arrived=arrival.arrived + cycles)
            right(self, arrival)

        MixedHost.received = received

    return change


def _tired(*schemes: str) -> Any:
    """Sources of a tenth of the rate that they were asked for, if the point has one of the schemes."""

    def change(spec: Mapping[str, Any]) -> None:
        from lanikai.sim.experiments.qos import mixed_host, streams

        if spec["scheme"] not in schemes:
            return
        best_effort, real_time = mixed_host.poisson, streams.on_off
        mixed_host.poisson = lambda chance, *, rate, **others: best_effort(chance, rate=rate / 10, **others)
        streams.on_off = lambda chance, *, peak_rate, **others: real_time(
            chance, peak_rate=peak_rate / 10, **others
        )

    return change


@mutant
def budgets_of_adapters_and_routers_are_forgotten(spec: Mapping[str, Any]) -> None:
    """Adapters have ten times their energy budget, and probes look at no power."""
    from lanikai.hdl.hca.injection.policy import SetupKind
    from lanikai.sim.admission.network import AdmittedNetwork
    from lanikai.sim.experiments.qos import mixed

    right, start = mixed.set_up_injection, AdmittedNetwork.__init__

    async def set_up(system: Any, driver: Any, words: Any) -> None:
        more = {SetupKind.POWER_BUDGET: 10}
        await right(system, driver, [(kind, node, value * more.get(kind, 1)) for kind, node, value in words])

    mixed.set_up_injection = set_up
    AdmittedNetwork.__init__ = lambda self, system, config, *, power=None, **others: start(
        self, system, config, **others
    )


@mutant
def sources_are_tired_under_congestion_control(spec: Mapping[str, Any]) -> None:
    """They send so little that the mean power is below the budget."""
    _tired("congestion")(spec)


@mutant
def sources_are_tired_under_PowerHerd(spec: Mapping[str, Any]) -> None:
    """They send so little that no router stalls."""
    _tired("power_herd")(spec)


@mutant
def sources_are_tired_under_peak_power_control(spec: Mapping[str, Any]) -> None:
    """They send so little that they take less power than under any other scheme."""
    _tired("power")(spec)


@mutant
def real_time_is_late_under_peak_power_control(spec: Mapping[str, Any]) -> None:
    """Real-time messages arrive 2000 cycles late."""
    _late("power", "real_time", 2000)(spec)


@mutant
def best_effort_is_late_under_peak_power_control(spec: Mapping[str, Any]) -> None:
    """Best-effort messages arrive 2000 cycles late."""
    _late("power", "best_effort", 2000)(spec)
