"""The stages of the pipelined router, joined."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring

from .crossbar import PipelinedCrossbarStage
from .receive import PipelinedReceiveStage
from .transmit import PipelinedTransmitStage
from .vl_allocation import PipelinedVlAllocation

__all__ = ["add_pipelined_stages"]


def add_pipelined_stages(m: Module, router: Any) -> None:
    """Adds the five stages to `m`, and drives the members of `router` (`Router`), which is `pipelined`."""
    config = router.config
    m.submodules.vl_allocation = allocation = PipelinedVlAllocation(config)
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
            crossbar.hopes[i].eq(allocation.hopes[i]),
            allocation.released[i].eq(transmit.released),
            # Stage 4.
            *(mine.eq(goal) for mine, goal in zip(crossbar.goal[i], receive.goal, strict=True)),
            *(
                getattr(crossbar, name)[i].eq(getattr(receive, name))
                for name in ("non_empty", "owns", "drop", "tail", "tail_behind", "last", "read_vl", "flit")
            ),
            *(getattr(crossbar, name)[i].eq(getattr(transmit, name)) for name in ("some", "plenty", "slot")),
            *(
                getattr(receive, name).eq(getattr(crossbar, name)[i])
                for name in ("read_select", "next_select", "stays_popped", "stays_kept", "pop")
            ),
            # Stage 5.
            transmit.granted.eq(crossbar.granted[i]),
            transmit.valid.eq(crossbar.out_valid[i]),
            transmit.flit.eq(crossbar.out_flit[i]),
        ]
    lost = Signal(config.ports)
    m.d.sync += [lost.eq(Cat(*crossbar.dropped)), router.dropped.eq(router.dropped + sum(lost))]
    m.d.comb += router.activity.eq(
        Cat(*(receive.arrived for receive in receivers), *crossbar.pop, *crossbar.out_valid).any()
    )
    if router.skippable:
        busy = Cat(
            *(
                Cat(receive.arrived, receive.rx.credit_valid, receive.non_empty, receive.left)
                for receive in receivers
            ),
            *crossbar.out_valid,
            lost,
        )
        m.d.comb += router.quiet.eq(~busy.any())
    for name, vectors in {
        "input_occupied": [receive.non_empty for receive in receivers],
        "output_vl_held": [receive.owns for receive in receivers],
        "output_occupied": [transmit.sent for transmit in transmitters],
        "output_blocked": [~transmit.some for transmit in transmitters],
    }.items():
        summary = Signal(config.ports * config.link.vls, name=name)
        m.d.comb += summary.eq(Cat(*vectors))
