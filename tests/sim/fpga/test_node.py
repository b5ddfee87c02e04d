"""The design `node`: what its host does and finds, and the whole path from a table to the serial line's wires."""

import asyncio

import pytest
from lanikai.hdl.board.node.config import NodeConfig
from lanikai.hdl.board.node.layout import AREA_BYTES, COMMAND, DESTINATION, RESULT, SOURCE, Result, Window
from lanikai.hdl.config import ConfigError
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.fpga import node
from lanikai.sim.fpga.line import LineError
from lanikai.sim.fpga.node import NODE_SIZES
from lanikai.sim.fpga.node_board import NodeOnBoard
from lanikai.sim.fpga.node_load import MESSAGES, NodeLoad, measure
from lanikai.sim.fpga.virtual_board import VirtualBoardConfig
from support.sim.virtual_board import on_both

SEED = 11
SIZE = NODE_SIZES["ulx3s-85f"]


class Memory:
    """A node whose card copies the area at the second look, and spoils a word."""

    def __init__(self, *, spoils=None, full_of=0):
        self.seed, self.words, self.looks, self.spoils = SEED, {}, 0, spoils
        self.cycles = 0
        for i in range(AREA_BYTES // 4):
            self.words[DESTINATION + 4 * i] = full_of

    async def begin(self):
        pass

    async def write(self, window, address, *words):
        if window == Window.DOORBELLS:
            count, length = (self.words[COMMAND + 16 + 4 * i] for i in range(2))
            for place in range(0, min(count, AREA_BYTES // length) * length, 4):
                self.words[DESTINATION + place] = self.words[SOURCE + place]
            if self.spoils is not None:
                self.words[DESTINATION + self.spoils] ^= 1
            self.words |= {RESULT + 4 * one: 100 + one for one in Result}
            return
        for i, word in enumerate(words):
            self.words[address + 4 * i] = word

    async def read(self, window, address, words=1):
        if window == Window.HOST_REGISTERS:
            return [int(self.looks > 1)]
        return [self.words[address + 4 * i] for i in range(words)]

    def took(self, cycles):
        self.cycles = cycles

    async def pause(self):
        self.looks += 1


def values(memory, *, messages=3, message_bytes=64):
    return asyncio.run(measure(memory, {"messages": messages, "message_bytes": message_bytes, "hop_bits": 3}))


def test_the_results_are_read_and_all_of_the_area_is_looked_at():
    found = values(memory := Memory())
    assert found == {one.name.lower(): 100 + one for one in Result} | {"wrong_words": 0}
    assert memory.cycles == 100 + Result.SPAN_CYCLES and memory.looks == 2
    # Inside of what was sent, its last word, the word behind it, the last of the area.
    for place in (0, 3 * 64 - 4, 3 * 64, AREA_BYTES - 4):
        assert values(Memory(spoils=place))["wrong_words"] == 1
    header = [memory.words[COMMAND + 4 * i] for i in range(4)]
    assert header[0] >> 8 & 0x3F == 0o01 and header[3] == 64, "out by port 1, back by port 0"


def test_a_card_that_does_nothing_is_found_out_whatever_was_there_before():
    """All words that are received differ from those that stood there: from a run with the same seed, say."""
    first = Memory()
    values(first)
    again = Memory()
    again.words = dict(first.words)

    async def nothing(window, address, *words):
        if window != Window.DOORBELLS:
            again.words.update({address + 4 * i: word for i, word in enumerate(words)})

    again.write = nothing
    assert values(again)["wrong_words"] == 3 * 16


def test_every_error_breaks_the_claim():
    experiment = NodeLoad(SIZE)
    parameters = experiment.parameters(["message_bytes=[64]"])
    (point,) = experiment.points(parameters, "quick")
    good = {"messages": 2, "span_cycles": 700, "least_cycles": 300, "most_cycles": 340, "sum_cycles": 640}
    errors = ("wrong_headers", "crc_errors", "length_errors", "wrong_words")

    def claim(**changed):
        results = experiment.results(parameters, point, good | dict.fromkeys(errors, 0) | changed)
        outcome = Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0)
        (found,) = experiment.claims(parameters, [outcome])
        return found.holds, results

    holds, results = claim()
    assert holds
    assert [results[f"latency_{name}_cycles"] for name in ("mean", "min", "max")] == [320, 300, 340]
    assert results["bandwidth_mb_per_s"] == pytest.approx(2 * 64 * 25 / 700)
    for name in errors:
        assert not claim(**{name: 1})[0]


def test_settings_are_checked():
    experiment = NodeLoad(SIZE)
    for size, usual in MESSAGES.items():
        counts = [experiment.points(experiment.parameters(one), size) for one in ([], ["messages=1"])]
        assert [points[0].spec["messages"] for points in counts] == [usual, 1]
    for setting, message in {
        "message_bytes=[6]": r"node-messages: message_bytes = 6: a multiple of 4, 4 to 1024$",
        "message_bytes=[1028]": r"message_bytes = 1028: a multiple of 4, 4 to 1024$",
        "messages=65536": r"node-messages: messages = 65536: must be 1 to 65535$",
        "messages=0": r"node-messages: messages = 0: must be 1 to 65535$",
        "loads=[1]": r"--set 'loads=\[1\]': unknown parameter 'loads' of node-messages; valid: message_bytes, messages",
    }.items():
        with pytest.raises(UserError, match=message):
            experiment.parameters([setting])
    usual = NodeConfig()
    for changes, message in {
        "program": ({"program": "0"}, r"program = 0: of another version"),
        "link": (
            {"router": usual.router.replace(ports=3, link=usual.router.link.replace(vls=2))},
            "not the same",
        ),
        "bus": (
            {"nic": usual.nic.replace(doorbell="polled")},
            r"nic.doorbell = polled: the program needs queue",
        ),
        "tick": (
            {"nic": usual.nic.replace(rtc_cycles_num=2)},
            r"nic.rtc_cycles_num/rtc_cycles_den: 1, as times",
        ),
    }.values():
        with pytest.raises(ConfigError, match=message):
            usual.replace(**changes)


def test_a_missing_package_is_told(monkeypatch):
    for package in ("pythondata_cpu_picorv32", "bronzebeard"):
        monkeypatch.setattr(node, "find_spec", lambda name, gone=package: None if name == gone else object())
        with pytest.raises(MissingTool, match=package.replace("_", "-")):
            node.node_sources()


def test_a_card_that_is_never_done_is_told(monkeypatch):
    monkeypatch.setattr("lanikai.sim.fpga.node_board.MOST_SECONDS", -1.0)

    class Line:
        def restart(self):
            pass

    board = NodeOnBoard(Line(), seed=1)
    asyncio.run(board.begin())
    with pytest.raises(LineError, match=r"^the card is not done after -1 s; reset the board$"):
        asyncio.run(board.pause())


@pytest.mark.full
def test_a_boards_numbers_are_the_simulations_down_to_the_serial_lines_wires(tmp_path):
    """Points one after the other: the first, of longer messages, must not bear on the next."""
    settings = ("baud=6250000",)
    config = VirtualBoardConfig(design_name="node", board="ulx3s-85f", settings=settings)
    found = on_both(config, ["message_bytes=[256, 8]", "messages=5"], tmp_path, seed=SEED)
    for real, simulated in found:
        assert real == simulated
        assert real["messages"] == 5 and not any(
            real[name] for name in ("wrong_words", "wrong_headers", "crc_errors")
        )
    long, short = (real for real, _ in found)
    # Two host DMAs of 64 words, and at least as long again on the link.
    assert short["least_cycles"] + 2 * 62 <= long["least_cycles"] <= long["most_cycles"]
