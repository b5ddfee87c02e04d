"""The send engine's turns: neither answers nor packets hold up the others."""

from lanikai.firmware.am.card.engines import Outgoing, SendEngine


class Accesses:
    """A script that notes the addresses from which packets are sent."""

    def __init__(self):
        self.sent = []

    def write(self, name, **fields):
        if name == "SEND_ADDRESS":
            self.sent.append(fields["address"])


def outgoing(address):
    return Outgoing(address=address, bytes=64, sent=lambda: None)


def play(answers, packets, passes):
    """The addresses that go out in so many passes."""
    engine, script = SendEngine(), Accesses()
    engine.packets.extend(outgoing(address) for address in packets)
    engine.answer = lambda _: outgoing(answers.pop(0)) if answers else None
    for _ in range(passes):
        engine.start(script)
        engine.start(script)
        engine.ended()
    return script.sent


def test_answers_and_packets_take_turns():
    """A card that refuses what hundreds of channels send has time for its own packets, and the other way round."""
    assert play(list(range(100, 110)), [1, 2, 3], 8) == [100, 1, 101, 2, 102, 3, 103, 104]
    assert play([100, 101], [1, 2, 3, 4], 6) == [100, 1, 101, 2, 3, 4]
    assert play([], [1, 2], 3) == [1, 2] and play([100], [], 2) == [100]
