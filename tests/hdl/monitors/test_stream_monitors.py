"""Monitors of streams and register ports: right histories break nothing, each wrong one breaks its rule."""

import pytest
from amaranth.lib import stream
from lanikai.hdl.config import ConfigError
from lanikai.hdl.monitors import RegisterPortMonitor, StreamMonitor
from lanikai.hdl.register_port import ProcessorSignature
from support.hdl.monitored import broken_rules

A, B, NONE = 3, 5, {}


def item(payload, ready=0):
    return {"payload": payload, "valid": 1, "ready": ready}


STREAMS = {
    "taken at once, one a cycle": ([item(A, 1), item(B, 1), item(A, 1)], []),
    "held until ready": ([item(A), item(A), item(A, 1), item(B, 1)], []),
    "ready before anything is offered": ([{"ready": 1}, {"payload": B}, item(A, 1)], []),
    "withdrawn": ([item(A), NONE, item(A, 1)], [(1, "valid_dropped")]),
    "changed": ([item(A), item(B), item(B, 1)], [(1, "payload_changed")]),
    "changed in the cycle in which it is taken": ([item(A), item(B, 1)], [(1, "payload_changed")]),
    "a new one after one that was taken": ([item(A, 1), item(B), item(B, 1)], []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_stream(name):
    cycles, expected = STREAMS[name]
    assert broken_rules(StreamMonitor(4), cycles) == expected


def test_a_monitor_of_a_signature_has_its_payload():
    assert broken_rules(StreamMonitor.of(stream.Signature(8)), [item(200), item(72)]) == [
        (1, "payload_changed")
    ]


def request(address=8, ready=0, **values):
    return {"request.valid": 1, "request.address": address, "response.ready": ready} | {
        f"request.{name}": value for name, value in values.items()
    }


PORTS = {
    "taken at once": ([request(8, 1), request(12, 1)], []),
    "waits as long as it may": ([request(), request(), request(8, 1), NONE], []),
    "waits too long": ([request(), request(), request(), request(8, 1), request(8, 1)], [(3, "late")]),
    "is never taken": ([request()] * 5, [(3, "late"), (4, "late")]),
    "withdrawn": ([request(), NONE], [(1, "request_dropped")]),
    "another address": ([request(), request(12)], [(1, "request_changed")]),
    "other data of a write": ([request(write=1, data=4), request(write=1, data=5)], [(1, "request_changed")]),
    "other data of a read, which has none": ([request(data=4), request(data=5)], []),
    "a write becomes a read": ([request(write=1), request()], [(1, "request_changed")]),
    "no multiple of 4": ([request(6, 1)], [(0, "unaligned")]),
}


@pytest.mark.parametrize("name", PORTS)
def test_register_port(name):
    cycles, expected = PORTS[name]
    assert broken_rules(RegisterPortMonitor.of(ProcessorSignature(), most_cycles=3), cycles) == expected


def test_a_register_port_has_a_cycle_at_least():
    with pytest.raises(ConfigError, match=r"^RegisterPortMonitor: most_cycles = 0: at least 1$"):
        RegisterPortMonitor(most_cycles=0)
