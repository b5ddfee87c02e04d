"""The stages of the pipelined router, joined."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring

from ..vl_allocation import VlAllocationStage
from .crossbar import PipelinedCrossbarStage
from .receive import PipelinedReceiveStage
from .transmit import PipelinedTransmitStage

__all__ = ["add_pipelined_stages"]


def add_pipelined_stages(m: Module, router: Any) -> None:
    """Adds the five stages to `m`, and drives the members of `router` (`Router`), which is `pipelined`."""
    config = router.config
    m.submodules.vl_allocation = allocation = VlAllocationStage(config)
    m.submodules.crossbar = crossbar = PipelinedCrossbarStage(config)
    receivers = [PipelinedReceiveStage(config, in_port=i) for i in range(config.ports)]
    transmitters = [PipelinedTransmitStage(config, credit_flits=depth) for depth in router.credit_flits]
    for i, (receive, transmit) in enumerate(zip(receivers, transmitters, strict=True)):
        m.submodules[f"receive_{i}"] = receive
        m.submodules[f"transmit_{i}"] = transmit
        wiring.connect(m, wiring.flipped(router.rx[i]), receive.rx)
        wiring.connect(m, transmit.tx, wiring.flipped(router.tx[i]))
        if hasattr(receive, "position"):
            m.d.comb += receive.position.eq(router.position)
        m.d.comb += [
            receive.connected.eq(router.connected),
            # Stages 2 and 3.
            *(want.eq(mine) for want, mine in zip(allocation.want[i], receive.want, strict=True)),
            receive.taken.eq(allocation.taken[i]),
            allocation.done[i].eq(crossbar.done[i]),
            receive.done.eq(crossbar.done[i]),
            # Stage 4.
            *(mine.eq(holds) for mine, holds in zip(crossbar.holds[i], allocation.holds[i], strict=True)),
            *(
                getattr(crossbar, name)[i].eq(getattr(receive, name))
                for name in ("arrived", "non_empty", "drop", "last", "flit")
            ),
            crossbar.near_full[i].eq(transmit.near_full),
            crossbar.nearer_full[i].eq(transmit.nearer_full),
            receive.read_select.eq(crossbar.read_select[i]),
            receive.next_select.eq(crossbar.next_select[i]),
            receive.next_stays.eq(crossbar.next_stays[i]),
            receive.pop.eq(crossbar.pop[i]),
            # Stage 5.
            transmit.crossing.eq(crossbar.crossing[i]),
            transmit.write_valid.eq(crossbar.write_valid[i]),
            transmit.write_data.eq(crossbar.write_data[i]),
        ]
    lost = Signal(config.ports)
    m.d.sync += [lost.eq(Cat(*crossbar.dropped)), router.dropped.eq(router.dropped + sum(lost))]
    m.d.comb += router.activity.eq(
        Cat(
            *(receive.arrived for receive in receivers),
            *crossbar.pop,
            *(transmit.sent for transmit in transmitters),
        ).any()
    )
    if router.skippable:
        busy = Cat(
            *(Cat(receive.arrived, receive.rx.credit_valid, receive.non_empty) for receive in receivers),
            *(transmit.non_empty for transmit in transmitters),
            lost,
        )
        m.d.comb += router.quiet.eq(~busy.any())
    for name, vectors in {
        "input_occupied": [receive.non_empty for receive in receivers],
        "output_vl_held": allocation.held,
        "output_occupied": [transmit.non_empty for transmit in transmitters],
        "output_blocked": [transmit.blocked for transmit in transmitters],
    }.items():
        summary = Signal(config.ports * config.link.vls, name=name)
        m.d.comb += summary.eq(Cat(*vectors))
