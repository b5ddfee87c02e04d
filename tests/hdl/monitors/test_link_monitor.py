"""The monitor of a link: right histories break nothing, each wrong one breaks the rule that it should."""

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.monitors import LinkMonitor
from support.hdl.monitored import broken_rules

CONFIG = LinkConfig(vls=3, restart=False)
RESTARTS = LinkConfig(vls=2, restart=True)
NONE = {}
HEAD, BODY, TAIL, WHOLE = (1, 0), (0, 0), (0, 1), (1, 1)


def flit(marks, vl=0, **others):
    head, tail = marks
    return {"valid": 1, "payload.head": head, "payload.tail": tail, "payload.vl": vl} | others


def credit(vl=0):
    return {"credit_valid": 1, "credit_vl": vl}


HISTORIES = {
    "a packet, and credits": ([flit(HEAD), flit(TAIL), credit(), flit(WHOLE), credit(), credit()], []),
    "as many flits as the buffer has, on each VL": (
        [flit(WHOLE), flit(WHOLE), flit(WHOLE, 1), flit(WHOLE, 2), flit(WHOLE, 1), flit(WHOLE, 2)],
        [],
    ),
    "a credit beside the flit that uses the next": (
        [flit(WHOLE), flit(WHOLE), credit(), flit(WHOLE, **credit()), credit()],
        [],
    ),
    "packets of two VLs in turns": ([flit(HEAD), flit(HEAD, 1), flit(TAIL), flit(TAIL, 1)], []),
    "a flit too many": ([flit(WHOLE)] * 3, [(2, "no_credit")]),
    "a flit beside the credit that it would need": (
        [flit(WHOLE), flit(WHOLE), flit(WHOLE, **credit())],
        [(2, "no_credit")],
    ),
    "credits of another VL": (
        [flit(WHOLE, 1), flit(WHOLE, 1), credit(1), *[flit(WHOLE)] * 3],
        [(5, "no_credit")],
    ),
    "a head in a packet": ([flit(HEAD), flit(WHOLE)], [(1, "head_inside")]),
    "a body without a head": ([flit(BODY)], [(0, "no_head")]),
    "a tail after a tail": ([flit(WHOLE), flit(TAIL)], [(1, "no_head")]),
    "a packet that goes on on another VL": ([flit(HEAD), flit(TAIL, 1)], [(1, "no_head")]),
    "no such VL": ([flit(WHOLE, 3)], [(0, "vl_range")]),
    "a credit of no such VL": ([credit(3)], [(0, "credit_range")]),
    "a credit too many": ([flit(WHOLE), credit(), credit()], [(2, "credit_unearned")]),
    "a credit of another VL": ([flit(WHOLE), credit(1)], [(1, "credit_unearned")]),
    "a credit beside the flit": ([flit(WHOLE, **credit())], [(0, "credit_unearned")]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_link(name):
    cycles, expected = HISTORIES[name]
    assert broken_rules(LinkMonitor.of(LinkSignature(CONFIG), depth=2), cycles) == expected


UP, DOWN, ANSWER = {}, {"restart": 1}, {"credit_restart": 1}
RESTARTED = {
    "all credits are home after a restart, and no packet is begun": (
        [flit(HEAD), flit(BODY), DOWN, DOWN | ANSWER, ANSWER, UP, flit(WHOLE), flit(WHOLE)],
        [],
    ),
    "a buffer that empties gives credits": ([flit(WHOLE), DOWN | credit(), DOWN | credit(), UP], []),
    "a reset receiver throws away what comes": ([ANSWER | flit(BODY), ANSWER | flit(TAIL), UP], []),
    "a flit beside `restart`": ([flit(WHOLE, **DOWN)], [(0, "flit_in_restart")]),
    "credits are no more than before": ([DOWN, UP, *[flit(WHOLE)] * 3], [(4, "no_credit")]),
    "an old credit after a restart": ([flit(WHOLE), DOWN, UP, credit()], [(3, "credit_unearned")]),
}


@pytest.mark.parametrize("name", RESTARTED)
def test_link_with_restart(name):
    cycles, expected = RESTARTED[name]
    assert broken_rules(LinkMonitor.of(LinkSignature(RESTARTS), depth=2), cycles) == expected


def test_a_buffer_has_a_flit_at_least():
    with pytest.raises(ConfigError, match=r"^LinkMonitor: depth = 0: at least 1$"):
        LinkMonitor(CONFIG, depth=0)
