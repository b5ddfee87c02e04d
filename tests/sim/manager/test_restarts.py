"""Random histories of managers that end and are started again, alone and together, while programs ask, release and die.

At no time do the cards send more, by the IDTs that they are set to, than there is. Nothing is lost.
"""

from __future__ import annotations

import pytest
from lanikai.sim.manager.record import ALL_PORTS, NodeRecord
from lanikai.sim.manager.rpc import CallMemory
from support.sim.manager_history import History


def histories(first: int, number: int) -> None:
    """Run the histories; a failure says by which seed."""
    restarts = grants = 0
    for seed in range(first, first + number):
        history = History(seed)
        try:
            history.run()
        except BaseException as error:
            raise AssertionError(f"history {seed}: {type(error).__name__}: {error}") from error
        restarts, grants = restarts + history.restarts, grants + history.grants
    assert restarts > number and grants > number


def test_no_history_of_restarts_oversubscribes():
    histories(0, 30)


def test_managers_that_forget_are_found_out(monkeypatch):
    """The managers run as if there were no record: bandwidth that a node held is given to others while its card goes
    on."""

    def forget(record: NodeRecord) -> NodeRecord:
        return NodeRecord(calls=CallMemory(record.calls.incarnation + 1), untold_ports={ALL_PORTS: None})

    monkeypatch.setattr(NodeRecord, "copy", forget)
    with pytest.raises(AssertionError, match=r"^history \d+: AssertionError: the cards send more"):
        histories(0, 30)


@pytest.mark.full
def test_no_history_of_a_thousand_oversubscribes():
    histories(1000, 1000)
