"""The experiments that can be run: a new one is a module beside this one and a line here.

A module is imported when its experiment is asked for, so that running one does not pay for the others' imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from lanikai.hdl.registry import Registry, class_problem

from ..errors import UserError
from ..names import hint
from ..published import CONSTANTS, source, tables
from .framework.base import Experiment, Listed

__all__ = ["EXPERIMENTS", "find", "listing"]

_CLASSES = {
    "admission-cluster": "qos.admission_cluster:AdmissionCluster",
    "admission-mesh": "qos.admission_mesh:AdmissionMesh",
    "am-bandwidth": "am.bandwidth:AmBandwidth",
    "am-contention": "am.contention:AmContention",
    "am-logp": "am.logp:AmLogp",
    "am-permutations": "am.permutations:AmPermutations",
    "am-virtual-networks": "am.virtual_networks:AmVirtualNetworks",
    "best-effort": "best_effort.experiment:BestEffortExperiment",
    "collectives": "workloads.collectives:Collectives",
    "congestion": "qos.congestion:Congestion",
    "cosched": "cosched.cosched:Cosched",
    "cq-config": "qos.cq_config:CqConfig",
    "descriptor-fetch": "descriptor_fetch:DescriptorFetch",
    "dma-bandwidth": "dma_bandwidth:DmaBandwidth",
    "doorbell-latency": "doorbell_latency:DoorbellLatency",
    "fair-queueing": "fair_queueing:FairQueueing",
    "faults": "faults.faults:Faults",
    "flow-times": "workloads.flows:FlowTimes",
    "goal-replay": "workloads.goal:GoalReplay",
    "idt-sweep": "idt_sweep:IdtSweep",
    "incoming-rate": "incoming_rate:IncomingRate",
    "mpi-idt": "mpi.idt:MpiIdt",
    "mpi-replay": "mpi.replay:MpiReplay",
    "mpi-share": "mpi.share:MpiShare",
    "network-load": "network_load:NetworkLoad",
    "network-trace": "workloads.trace:NetworkTrace",
    "peak-power": "power.peak:PeakPower",
    "power-load": "power.load:PowerLoad",
    "rate-accuracy": "rate_accuracy:RateAccuracy",
    "rate-overhead": "rate_overhead:RateOverhead",
    "rate-table": "rate_table:RateTable",
    "share-bidir": "share_bidir:ShareBidir",
    "share-receiver": "share_receiver:ShareReceiver",
    "share-senders": "share_senders:ShareSenders",
    "transfer": "transfer:Transfer",
    "via-admission": "via.admission:ViaAdmission",
    "via-anatomy": "via.anatomy:ViaAnatomy",
    "via-bulk": "via.bulk:ViaBulk",
    "via-cbr": "via.cbr:ViaCbr",
    "via-hns": "via.hns:ViaHns",
    "via-latency": "via.latency:ViaLatency",
    "via-qos-load": "via.qos_load:ViaQosLoad",
    "via-scalability": "via.scalability:ViaScalability",
    "via-schedulers": "via.schedulers:ViaSchedulers",
    "via-vbr": "via.vbr:ViaVbr",
    "video-reservation": "video_reservation:VideoReservation",
    "vl-isolation": "vl_isolation:VlIsolation",
    "wormhole-unfairness": "wormhole_unfairness:WormholeUnfairness",
    "wrr-shares": "wrr_shares:WrrShares",
    "wrr-variants": "qos.wrr_variants:WrrVariants",
}
"""Name -> module and class of every experiment that is built."""


class _Experiments(Registry[Experiment]):
    """The built experiments by name, each made when it is first asked for."""

    def own_value(self, name: str) -> Experiment:
        """An experiment of the tree."""
        found = self._own[name]
        return _load(found) if isinstance(found, str) else found

    def made(self, extension: Any) -> Experiment:
        """The experiment of a class."""
        found: Experiment = extension()
        return found


@cache
def _load(place: str) -> Experiment:
    module, _, class_name = place.partition(":")
    experiment: Experiment = getattr(import_module(f".{module}", __package__), class_name)()
    assert _CLASSES[experiment.name] == place, (experiment.name, place)
    return experiment


def _problem(name: str, value: Any) -> str:
    """The fault of an experiment from outside of the tree."""
    if reason := class_problem(Experiment)(name, value):
        return reason
    missing = [one for one in ("name", "asks", "source", "entry", "Parameters") if not hasattr(value, one)]
    if missing:
        return f"{value.__name__} lacks {', '.join(missing)}"
    return "" if value.name == name else f"{value.__name__}.name is {value.name!r}"


_OWN: Mapping[str, Any] = _CLASSES
EXPERIMENTS: Registry[Experiment] = _Experiments("experiments", "experiment", _problem) | _OWN
"""Every experiment that is built, by name."""


def listing() -> list[Listed]:
    """Every built experiment, then every other one of the published numbers, in their order. Tables of a set-up's
    constants are no experiments."""
    rows = [
        Listed(name=name, state="built", source=e.source, asks=e.asks, origin=EXPERIMENTS.origin(name))
        for name, e in EXPERIMENTS.items()
    ]
    rows += [
        Listed(
            name=name,
            state="not built yet",
            source=source(name),
        )
        for name in tables()
        if name not in EXPERIMENTS and name not in CONSTANTS
    ]
    return rows


def find(name: str) -> Experiment:
    """The experiment `name`. Raises UserError, with the name that was probably meant, if it cannot be run."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    valid = ", ".join(EXPERIMENTS)
    if name in CONSTANTS:
        raise UserError(f"{name!r} holds the constants of a set-up and is no experiment; built are: {valid}")
    if name in tables():
        raise UserError(f"experiment {name!r} is not built yet; built are: {valid}")
    meant = hint(name, [*EXPERIMENTS, *tables()])
    raise UserError(f"unknown experiment {name!r}{meant}; built are: {valid}")
