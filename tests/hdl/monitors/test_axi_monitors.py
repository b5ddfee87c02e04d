"""Monitors of AXI4 and AXI4-Lite: right histories break nothing, each wrong one breaks the rule that it should."""

import pytest
from lanikai.hdl.axi import Axi4LiteSignature, Axi4Signature
from lanikai.hdl.config import ConfigError
from lanikai.hdl.monitors import Axi4LiteMonitor, Axi4Monitor
from support.hdl.monitored import broken_rules

NONE = {}
FIXED, INCR, WRAP, RESERVED = range(4)


def both(*cycles):
    return {name: value for one in cycles for name, value in one.items()}


def address(channel, at=0x100, beats=1, *, ready=1, size=2, burst=INCR, id=0):
    values = {
        "addr": at,
        "len": beats - 1,
        "size": size,
        "burst": burst,
        "id": id,
        "valid": 1,
        "ready": ready,
    }
    return {f"{channel}{name}": value for name, value in values.items()}


def w(last=1, *, ready=1, data=7):
    return {"wdata": data, "wlast": last, "wvalid": 1, "wready": ready, "wstrb": 15}


def b(id=0, *, ready=1, resp=0):
    return {"bid": id, "bvalid": 1, "bready": ready, "bresp": resp}


def r(last=1, *, id=0, ready=1, data=9):
    return {"rid": id, "rlast": last, "rdata": data, "rvalid": 1, "rready": ready}


def aw(*place, **values):
    return address("aw", *place, **values)


def ar(*place, **values):
    return address("ar", *place, **values)


AXI4 = {
    "a write": ([aw(0x100, 2), w(0), w(1), b()], []),
    "address, data and the next one at once": ([both(aw(), w()), both(aw(), w(), b()), b()], []),
    "data before its address": ([w(0), w(1), aw(0x100, 2), b()], []),
    "an address inside of its data": ([w(0), both(aw(0x100, 3), w(0)), w(1), b()], []),
    "two bursts of data before their addresses": ([w(), w(0), w(1), aw(), aw(0x100, 2), b(), b()], []),
    "two addresses before their data": ([aw(0, 2), aw(8, 1), w(0), w(1), w(1), b(), b()], []),
    "responses of two IDs the other way round": ([aw(id=1), aw(id=2), w(), w(), b(2), b(1)], []),
    "up to the end of 4096 bytes": ([ar(0xFF8, 2), r(0), r(1)], []),
    "read data of two IDs in turns": (
        [ar(0, 2, id=1), ar(0, 2, id=2), r(0, id=1), r(0, id=2), r(1, id=2), r(1, id=1)],
        [],
    ),
    "two reads of an ID": ([ar(0, 2), ar(0, 1), r(0), r(1), r(1)], []),
    "a burst that wraps": ([ar(0x108, 4, burst=WRAP), r(0), r(0), r(0), r(1)], []),
    "write address withdrawn": ([aw(ready=0), NONE], [(1, "aw_held")]),
    "write address changed": ([aw(ready=0), aw(0x200, ready=0), aw(0x200)], [(1, "aw_held")]),
    "write data changed": ([w(ready=0), w(ready=0, data=8)], [(1, "w_held")]),
    "last beat withdrawn": ([w(ready=0), w(0, ready=0)], [(1, "w_held")]),
    "read address changed": ([ar(ready=0), ar(id=1)], [(1, "ar_held")]),
    "response withdrawn": ([both(aw(), w()), b(ready=0), NONE], [(2, "b_held")]),
    "read data changed": ([ar(), r(ready=0), r(data=1)], [(2, "r_held")]),
    "no such burst": ([aw(burst=RESERVED), ar(burst=RESERVED)], [(0, "aw_burst"), (1, "ar_burst")]),
    "a burst that wraps after 3 beats": ([ar(0, 3, burst=WRAP)], [(0, "ar_burst")]),
    "a burst that wraps and is not aligned": ([aw(0x102, 4, burst=WRAP)], [(0, "aw_burst")]),
    "a fixed burst of 17 beats": ([aw(0, 17, burst=FIXED), aw(0, 16, burst=FIXED)], [(0, "aw_burst")]),
    "beats wider than the bus": ([aw(size=3), ar(size=3)], [(0, "aw_size"), (1, "ar_size")]),
    "a write across 4096 bytes": ([aw(0xFF8, 3)], [(0, "aw_crosses")]),
    "a read across 4096 bytes": ([ar(0x1FFC, 2)], [(0, "ar_crosses")]),
    "the first beat at an odd place, up to 4096 bytes": ([ar(0xFFA, 2), ar(0xFFA, 3)], [(1, "ar_crosses")]),
    "a last beat too early": ([aw(0, 3), w(0), w(1)], [(2, "w_last")]),
    "a last beat too late": ([aw(0, 2), w(0), w(0)], [(2, "w_last")]),
    "a last beat that its address finds too early": ([w(0), w(1), aw(0, 3)], [(2, "w_last")]),
    "a last beat that its address finds missing": ([w(0), w(0), aw(0, 2)], [(2, "w_last")]),
    "a last beat beside its address": ([both(aw(0, 2), w(1))], [(0, "w_last")]),
    "too many writes": ([aw(), aw(), aw()], [(2, "write_many")]),
    "too much data ahead": ([w(), w(), w()], [(2, "write_many")]),
    "too many reads of an ID": ([ar(), ar(), ar(id=1), ar()], [(3, "read_many")]),
    "a response before the last beat": ([aw(0, 2), w(0), b()], [(2, "b_unasked")]),
    "a response in the cycle of the last beat": ([aw(), both(w(), b())], [(1, "b_unasked")]),
    "a response of another ID": ([both(aw(id=1), w()), b(2)], [(1, "b_unasked")]),
    "a second response": ([both(aw(), w()), b(), b()], [(2, "b_unasked")]),
    "a response to data without an address": ([w(), b()], [(1, "b_unasked")]),
    "read data beside its address": ([both(ar(), r())], [(0, "r_unasked")]),
    "read data of another ID": ([ar(id=1), r(id=2)], [(1, "r_unasked")]),
    "read data after the last": ([ar(), r(), r()], [(2, "r_unasked")]),
    "a read's last beat too early": ([ar(0, 2), r(1)], [(1, "r_last")]),
    "a read's last beat too late": ([ar(), r(0)], [(1, "r_last")]),
    "last beats of two reads": ([ar(0, 2), ar(0, 1), r(0), r(0)], [(3, "r_last")]),
}  # fmt: skip


@pytest.mark.parametrize("name", AXI4)
def test_axi4(name):
    cycles, expected = AXI4[name]
    assert broken_rules(Axi4Monitor.of(Axi4Signature(data_bits=32), outstanding=2), cycles) == expected


def lite(channel, ready=1, **values):
    return {f"{channel}valid": 1, f"{channel}ready": ready} | {
        f"{channel}{name}": value for name, value in values.items()
    }


LITE = {
    "a write": ([both(lite("aw"), lite("w")), lite("b")], []),
    "data before its address": ([lite("w"), lite("aw"), lite("b")], []),
    "two writes and a read": ([both(lite("aw"), lite("w"), lite("ar")), both(lite("b"), lite("r"))], []),
    "a response beside the next write": (
        [both(lite("aw"), lite("w")), both(lite("aw"), lite("w"), lite("b")), lite("b")],
        [],
    ),
    "an address changed": ([lite("aw", 0, addr=4), lite("aw", 0, addr=8)], [(1, "aw_held")]),
    "strobes changed": ([lite("w", 0, strb=1), lite("w", 0, strb=3)], [(1, "w_held")]),
    "a read withdrawn": ([lite("ar", 0), NONE], [(1, "ar_held")]),
    "a response withdrawn": ([both(lite("aw"), lite("w")), lite("b", 0), NONE], [(2, "b_held")]),
    "read data changed": ([lite("ar"), lite("r", 0, data=1), lite("r", data=2)], [(2, "r_held")]),
    "too many writes": ([lite("aw"), lite("aw"), lite("aw")], [(2, "write_many")]),
    "too many words": ([lite("w"), lite("w"), lite("w")], [(2, "write_many")]),
    "too many reads": ([lite("ar"), lite("ar"), lite("ar")], [(2, "read_many")]),
    "a response to an address alone": ([lite("aw"), lite("b")], [(1, "b_unasked")]),
    "a response to data alone": ([lite("w"), lite("b")], [(1, "b_unasked")]),
    "two responses": ([both(lite("aw"), lite("w")), lite("b"), lite("b")], [(2, "b_unasked")]),
    "read data beside its address": ([both(lite("ar"), lite("r"))], [(0, "r_unasked")]),
    "exclusive responses": (
        [both(lite("aw"), lite("w"), lite("ar")), both(lite("b", resp=1), lite("r", resp=1))],
        [(1, "b_response"), (1, "r_response")],
    ),
    "error responses": (
        [both(lite("aw"), lite("w"), lite("ar")), both(lite("b", resp=2), lite("r", resp=3))],
        [],
    ),
}


@pytest.mark.parametrize("name", LITE)
def test_axi4_lite(name):
    cycles, expected = LITE[name]
    monitor = Axi4LiteMonitor.of(Axi4LiteSignature(address_bits=8), outstanding=2)
    assert broken_rules(monitor, cycles) == expected


@pytest.mark.parametrize(
    ("kind", "signature"),
    [(Axi4Monitor, Axi4Signature(data_bits=32)), (Axi4LiteMonitor, Axi4LiteSignature(address_bits=8))],
)
def test_one_transfer_at_least_may_be_under_way(kind, signature):
    with pytest.raises(ConfigError, match=f"^{kind.__name__}: outstanding = 0: at least 1$"):
        kind(signature, outstanding=0)
