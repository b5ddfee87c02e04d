"""The stages of messages in waves, and in a trace that forgets the oldest."""

from collections import Counter

import pytest
from lanikai.firmware.processor import Processor
from lanikai.firmware.via.costs import SVIA_COSTS
from lanikai.firmware.via.parallel.costs import PVIA_COSTS
from lanikai.firmware.via.trace import STEP_LABELS, Stage, Trace
from lanikai.sim.models.processor_mailbox import STEP_BITS

SHOWN = {stage for stage in Stage if stage not in (Stage.WAIT, Stage.DESCRIPTOR, Stage.DATA)}
"""Stages in which the processor is at work; the others are the engine's."""


def test_each_step_of_a_message_shows_its_stage_in_waves():
    """Each label begins with the stage, and no two are the same as far as waves have room for letters."""
    assert STEP_LABELS.keys() <= SVIA_COSTS.table.keys() | PVIA_COSTS.table.keys()
    assert {Stage(int(label[:2])) for label in STEP_LABELS.values()} == SHOWN
    shown = Counter(label.encode()[: STEP_BITS // 8] for label in STEP_LABELS.values())
    assert max(shown.values()) == 1 and all(label.endswith(step) for step, label in STEP_LABELS.items())


def test_a_step_of_no_stage_has_its_own_name():
    shown = []
    processor = Processor.__new__(Processor)
    processor._show, processor.watch, processor.labels = shown.append, None, STEP_LABELS
    for step in ("process", "timer", ""):
        processor.show(step)
    assert shown == ["05_process", "timer", ""]


@pytest.mark.parametrize("most", [1, 3])
def test_a_trace_forgets_the_oldest(most):
    trace = Trace(lambda: 7, most=most)
    for index in range(5):
        trace.begin(1, index, receive=False)
    assert [one.number for one in trace] == list(range(5 - most, 5))
