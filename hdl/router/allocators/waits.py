"""The longest wait of a VL at the crossbar: a bound for every arbiter and allocator."""

from __future__ import annotations

from ...config import RouterConfig
from ..scheduler import looks_ahead, weighs_outputs
from . import allocator_class
from .allocator import PAUSE_CYCLES, patience_cycles

__all__ = ["wait_bound"]


def wait_bound(
    config: RouterConfig,
    *,
    at_input: int | None = None,
    at_output: int | None = None,
    slowest: int | None = None,
) -> int | None:
    """The most cycles, its own included, in which a VL asks for an output until its flit crosses.

    None if there is no bound. The bound holds under saturation: every VL that asks goes on asking for its output.
    Control packets are aside. C is the number of VLs, P that of ports.

    - `at_input`, `at_output`: the `wait_bound` of the VL arbiters for the VL at its input and at its output, in flits
      of others; None without a bound. They are not looked at with `vl_arbiter` round robin.
    - `slowest`: with packets that keep their VL, the largest such bound of any VL at its input. Otherwise it is the
      largest bound of any VL of any input, at the output that it asks for. None if one of them has none.

    *Round robin*: C P + (C - 1) (P - 1), with `islip` 2 P^2 C. The allocators' docstrings have the reason. VLs may
    begin to ask at any time there.

    *Outputs first* (packets keep their VL). The VL is its output's pick after `at_output` flits of others. Each pick
    goes within `slowest` + 1 cycles. An output is overdue after Q = `patience_cycles` in which its pick did not go.
    If `slowest` is below Q that never happens, and the bound is (`at_output` + 1) (`slowest` + 1).

    Otherwise a VL that is shown to an input with a bound of W flits goes within S(W) = 2 ((W + 1) C + P) cycles. Each
    flit of the input may lose its overdue output to C - 1 others in turn, and to a pick that goes at last. That takes
    less than half of the cycles. A VL is shown if it is the pick, or after Q cycles. So between two picks that go there
    are at most S(`slowest`) cycles, or Q + S(`at_input`) if the VL itself does not go in them. A pick may never
    go, since the table of its input lets others go for ever. With these bounds it holds nobody up.

    Without look-ahead each flit may be followed by `PAUSE_CYCLES` in which others stand in for its VL: this bound is
    that many times longer, and once.

    *Inputs first* (never with look-ahead). Each change of the VL at an input's turn is a flit charged there. That flit
    goes, or is parked after Q + 1 cycles at most. So within (`at_input` + 1) (Q + 1) cycles the VL has gone, or is
    parked and goes on asking its output. An output takes its turn when its pick goes. A pick that does not go is parked
    and stays. It stays until it goes, behind P - 1 other outputs at most, or until a VL comes that is before it. C - 1
    others at most are before it. There are also pauses, in which a VL that has just gone is picked. With all this an
    output takes a turn in C (P + 1 + `PAUSE_CYCLES`) cycles. So the bound is
    (`at_input` + 1) (Q + 1) + (`at_output` + 1) C (P + 1 + `PAUSE_CYCLES`).

    If `slowest` + C + `PAUSE_CYCLES` is at most Q, nothing is ever parked. Then an offer goes after these at most:

    - `slowest` flits that are charged at its output
    - C - 1 flits that stand in there for one that pauses (they go in turn)
    - the pauses of its own input

    So the bound is (`at_input` + 1) (`slowest` + C + `PAUSE_CYCLES`).
    """
    ports, vls = config.ports, config.link.vls
    if not weighs_outputs(config):
        return allocator_class(config).turns_bound(ports=ports, vls=vls)
    patience = patience_cycles(ports)
    if config.vl_selection != "same":
        if at_input is None:
            return None
        if slowest is not None and slowest + vls + PAUSE_CYCLES <= patience:
            return (at_input + 1) * (slowest + vls + PAUSE_CYCLES)
        if at_output is None:
            return None
        parked = (at_output + 1) * vls * (ports + 1 + PAUSE_CYCLES)
        return (at_input + 1) * (patience + 1) + parked
    if at_output is None:
        return None
    pauses = 1 if looks_ahead(config) else 1 + PAUSE_CYCLES
    if slowest is not None and slowest < patience:
        return pauses * (at_output + 1) * (slowest + 1)

    def shown(flits: int) -> int:
        return 2 * ((flits + 1) * vls + ports)

    turns = []
    if slowest is not None:
        turns.append(shown(slowest))
    if at_input is not None:
        turns.append(patience + shown(at_input))
    return pauses * (at_output + 1) * min(turns) if turns else None
