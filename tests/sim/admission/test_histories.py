"""Random histories of admission: after all is over every register is as before, whatever was lost, late or dead."""

import logging
import os
import random

import pytest
from support.admission.history import History
from support.admission.mutants import MUTANTS

FIRST = int(os.environ.get("ADMISSION_SEED", random.randrange(1 << 30)))
"""Seed of the first history. `ADMISSION_SEED` gives back one that was logged."""
QUICK, FULL = 250, 10_000
MUTANT_HISTORIES = 300


def run(histories):
    states = set()
    for seed in range(FIRST, FIRST + histories):
        history = History(seed)
        try:
            history.run()
        except BaseException as error:
            error.add_note(f"ADMISSION_SEED={seed}; {history.log}")
            raise
        states |= {request.state.name for request in history.requests}
    logging.info("histories %d to %d", FIRST, FIRST + histories - 1)
    # All ends have been seen.
    assert states == {"ASKING", "OPEN", "REFUSED", "SILENT", "LOST", "CLOSED"}


def test_random_histories_leave_every_register_as_it_was():
    run(QUICK)


@pytest.mark.full
def test_ten_thousand_random_histories_leave_every_register_as_it_was():
    run(FULL)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_histories_notice_a_mechanism_that_is_broken(mutant, monkeypatch):
    """Fixed seeds: the first history that notices it ends the test."""
    mutant(monkeypatch)
    for seed in range(MUTANT_HISTORIES):
        try:
            History(seed).run()
        except Exception:
            return
    pytest.fail(f"{MUTANT_HISTORIES} histories have not noticed it")
