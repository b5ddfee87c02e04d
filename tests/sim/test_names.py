"""The name that was probably meant."""

from __future__ import annotations

import pytest
from lanikai.sim.names import hint, unknown

NAMES = ["share-senders", "share-bidir", "ports (2 to 64)", "message_bytes", "run"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("share-sender", "share-senders"), ("SHARE_SENDERS", "share-senders"), ("rnu", "run")],
)  # fmt: skip
def test_a_near_name_is_offered(given, meant):
    assert hint(given, NAMES) == f" (did you mean {meant!r}?)"


@pytest.mark.parametrize("given", ["", "é", "nothing-of-all-this"])
def test_none_is_offered_where_none_is_near(given):
    assert hint(given, NAMES) == ""


def test_all_valid_names_are_listed_nearest_first():
    error = unknown("key", "portz", NAMES)
    assert str(error).startswith("unknown key 'portz'; valid keys: ports (2 to 64), ")
    assert error.exit_status == 2
