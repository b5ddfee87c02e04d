"""The send engine's turns: neither answers nor packets hold up the others."""

from lanikai.firmware.am.card.engines import MOST_ANSWERS, Outgoing, SendEngine


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


def test_packets_have_their_turn_after_two_answers():
    """A card that refuses what hundreds of channels send has time for its own packets, and the other way round."""
    assert MOST_ANSWERS == 2
    assert play(list(range(100, 110)), [1, 2], 9) == [100, 101, 1, 102, 103, 2, 104, 105, 106]
    assert play([100, 101, 102], [1, 2, 3], 6) == [100, 101, 1, 102, 2, 3]
    assert play([], [1, 2], 3) == [1, 2] and play([100], [], 2) == [100]
