"""The register port between coroutines: accesses one after the other, in the order in which they were asked for."""

import types

import pytest
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.sim.inside.words import Fields
from lanikai.sim.models import register_port
from lanikai.sim.models.register_port import RegisterPort

REQUEST, RESPONSE = Fields(PROCESSOR_REQUEST), Fields(PROCESSOR_RESPONSE)


@types.coroutine
def pause():
    yield


class Flag:
    def __init__(self):
        self.is_set = False

    def set(self):
        self.is_set = True

    async def wait(self):
        while not self.is_set:
            await pause()


class Clock:
    """Phases that are steps of the loop in `play`."""

    flag = Flag

    async def drive_phase(self):
        await pause()

    sample_phase = drive_phase


class Device:
    """Both signals of the port: each access waits for its third look at `ready`. `taken`: addresses in their order."""

    def __init__(self):
        self.taken, self.looks, self.request = [], 0, 0

    def set(self, request):
        assert not (request and self.request), "an access is begun while another one waits"
        self.request, self.looks = request, 0
        if request:
            self.taken.append(REQUEST.get(request, "address"))

    def get(self):
        self.looks += 1
        return RESPONSE.pack(ready=self.looks >= 3, data=REQUEST.get(self.request, "address") + 1)


@pytest.fixture
def device(monkeypatch):
    device = Device()
    monkeypatch.setattr(register_port.native_api, "signal", lambda name, scope: device)
    return device


def play(coroutines):
    """Run all of them to their ends, a step each in turn."""
    left = list(coroutines)
    for _ in range(1000):
        for one in list(left):
            try:
                one.send(None)
            except StopIteration:
                left.remove(one)
    assert not left, "somebody waits for ever"


def test_accesses_of_many_coroutines_go_one_after_the_other(device):
    port = RegisterPort(Clock(), {}, prefix="")

    async def reader(number):
        for turn in range(3):
            await port.access(4 * (10 * number + turn))

    play([reader(number) for number in range(3)])
    # Whoever comes while others wait goes behind them.
    assert device.taken == [4 * (10 * number + turn) for turn in range(3) for number in range(3)]


def test_an_access_that_fails_gives_the_port_to_the_next_one(device):
    port = RegisterPort(Clock(), {}, prefix="")
    failed = []

    async def wrong():
        try:
            await port.access(0, 1 << 32)
        except ValueError as error:
            failed.append(str(error))

    async def right():
        await port.access(8, 5)

    play([right(), wrong(), right()])
    assert device.taken == [8, 8] and failed == ["data = 0x100000000: 0 to 0xffffffff"]
