"""A fault in the transport makes a test fail: one for each thing that it promises."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lanikai.firmware.am import channels, send_half, transport
from lanikai.firmware.am.channels import Group, Leave, Row, SendChannel
from lanikai.firmware.am.messages import Ending
from lanikai.firmware.am.send_half import SendHalf
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.waiting import Waiting
from lanikai.firmware.am.wire import SEQUENCE_MODULUS, Reason

Patch = pytest.MonkeyPatch
FAILURES = (AssertionError, ValueError, pytest.fail.Exception)


def checks_of(name: str) -> ModuleType:
    """A module of tests beside this one."""
    spec = importlib.util.spec_from_file_location(f"mutated_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def before(patch: Patch, owner: type, name: str, what: Callable[..., Any]) -> None:
    """Call `what` with a method's arguments before it; what it returns takes their place, unless it is None."""
    method = getattr(owner, name)

    def changed(self, *args, **named):
        return method(self, *(what(self, *args, **named) or args), **named)

    patch.setattr(owner, name, changed)


def takes_copies(patch: Patch) -> None:
    def back(self, row, header, words, column, void):
        row.receive[column].last = (header.sequence - 1) % SEQUENCE_MODULUS

    before(patch, Transport, "_data", back)


def takes_copies_meanwhile(patch: Patch) -> None:
    def shut(self, row, header, words, column, void):
        row.receive[column].open = False

    before(patch, Transport, "_data", shut)


def forgets_fates(patch: Patch) -> None:
    def fate(self, row, header, words, column, void):
        row.receive[column].fate = Reason.DELIVERED

    before(patch, Transport, "_data", fate)


def leaves_without_void(patch: Patch) -> None:
    void = SendHalf._void

    def changed(self, channel: SendChannel, leave: Leave) -> None:
        if leave is Leave.TURN:
            void(self, channel, leave)
        else:
            channel.advance()
            self._free(channel, Ending.WITHDRAWN)

    patch.setattr(SendHalf, "_void", changed)


def turns_without_void(patch: Patch) -> None:
    void = SendHalf._void

    def changed(self, channel: SendChannel, leave: Leave) -> None:
        if leave is Leave.QUIET:
            void(self, channel, leave)
        else:
            channel.advance()
            self._turn(channel)

    patch.setattr(SendHalf, "_void", changed)


def trusts_every_life(patch: Patch) -> None:
    def expected(self, row, header, words, column, void):
        return row, header, [*words[:6], words[6] & 0xFFFF | self.incarnation << 16, *words[7:]], column, void

    before(patch, Transport, "_data", expected)


def believes_old_lives(patch: Patch) -> None:
    patch.setattr(transport, "newer", lambda incarnation, other: incarnation != other)


def never_wraps(patch: Patch) -> None:
    patch.setattr(transport, "newer", lambda incarnation, other: incarnation > other)


def numbers_from_zero_after_the_last(patch: Patch) -> None:
    patch.setattr(transport, "SEQUENCE_MODULUS", SEQUENCE_MODULUS - 1)


def goes_on_after_giving_up(patch: Patch) -> None:
    def changed(self, channel: SendChannel) -> None:
        self._free(channel, Ending.RETURNED, Reason.UNREACHABLE)

    patch.setattr(SendHalf, "_give_up", changed)


def never_sends_again(patch: Patch) -> None:
    patch.setattr(SendHalf, "_look", lambda self, channel: None)


def never_gives_up(patch: Patch) -> None:
    def again(self, channel: SendChannel):
        channel.tries = channel.group.row.tries = 0

    before(patch, SendHalf, "_look", again)


def counts_refusals_as_silence(patch: Patch) -> None:
    def changed(self, channel: SendChannel, stamp: int, reason: Reason) -> None:
        tries = channel.tries
        refused(self, channel, stamp, reason)
        channel.tries = max(tries, self.kept.get(channel.column, 0) + 1)
        self.kept[channel.column] = channel.tries

    refused = SendHalf._refused
    patch.setattr(SendHalf, "kept", {}, raising=False)
    patch.setattr(SendHalf, "_refused", changed)
    before(patch, SendHalf, "_look", lambda self, one: setattr(one, "tries", self.kept.get(one.column, 0)))


def believes_old_refusals(patch: Patch) -> None:
    before(patch, SendHalf, "_refused", lambda self, channel, stamp, reason: (channel, channel.stamp, reason))


def gives_no_turns(patch: Patch) -> None:
    patch.setattr(Waiting, "wanted", lambda self, message: False)


def lets_the_refused_have_all(patch: Patch) -> None:
    patch.setattr(Waiting, "_may", lambda self, flow: True)


def serves_one_source_first(patch: Patch) -> None:
    def sort(self):
        self._turns = send_half.deque(sorted(self._turns))

    before(patch, Waiting, "take", sort)


def one_group_for_both(patch: Patch) -> None:
    find = SendHalf._row

    def changed(self, node: int) -> Row | None:
        row = find(self, node)
        if row is not None:
            row.groups = (row.groups[0], row.groups[0])
        return row

    patch.setattr(SendHalf, "_row", changed)


def begins_tries_anew(patch: Patch) -> None:
    before(
        patch,
        SendHalf,
        "quiesce",
        lambda self, endpoint: [row.answers() for row in self._rows.values()] and None,
    )


def forgets_that_a_card_is_down(patch: Patch) -> None:
    def changed(self, row: Row) -> None:
        give_up(self, row)
        row.answers()

    give_up = SendHalf._give_up_row
    patch.setattr(SendHalf, "_give_up_row", changed)


def keeps_abandoned_messages(patch: Patch) -> None:
    patch.setattr(SendHalf, "abandon", lambda self, endpoint: None)


def sends_the_old_messages_to_a_new_life(patch: Patch) -> None:
    def unsent(self, row: Row, incarnation: int):
        for channel in row.send:
            channel.sent = False

    before(patch, SendHalf, "_restart", unsent)


def stamps_by_the_clock_alone(patch: Patch) -> None:
    patch.setattr(send_half, "STAMP_MODULUS", 1 << 64)


def tells_nobody(patch: Patch) -> None:
    loaded = Transport.loaded
    patch.setattr(Transport, "loaded", lambda self, endpoint: loaded(self, endpoint)[:0])


def absent_endpoints_keep_their_channels(patch: Patch) -> None:
    patch.setattr(Group, "to_make_way", lambda self: None)


def absent_endpoints_wait_for_ever(patch: Patch) -> None:
    patch.setattr(Waiting, "age", lambda self, most: None)


MUTATIONS: dict[Callable[[Patch], None], list[tuple[str, str, tuple[object, ...]]]] = {
    takes_copies: [
        ("test_transport", "test_a_copy_is_acknowledged_again_and_not_delivered", ()),
        ("test_adversary", "explore", (1, 25, False)),
    ],
    takes_copies_meanwhile: [
        ("test_transport", "test_a_copy_that_comes_while_the_message_is_being_delivered_is_thrown_away", ()),
        ("test_adversary", "explore", (1, 25, False)),
    ],
    forgets_fates: [
        (
            "test_transport",
            "test_a_final_refusal_is_the_numbers_fate_and_the_message_comes_back",
            (Reason.OUTSIDE,),
        )
    ],
    leaves_without_void: [("test_adversary", "explore", (1, 25, False))],
    turns_without_void: [("test_adversary", "explore", (1, 25, False))],
    trusts_every_life: [
        ("test_adversary", "explore", (1, 25, True)),
        (
            "test_transport",
            "test_a_card_that_was_started_again_takes_no_copy_of_what_it_had_taken_before",
            (),
        ),
    ],
    believes_old_lives: [
        ("test_adversary", "explore", (1, 25, True)),
        ("test_transport", "test_packets_of_a_cards_earlier_life_are_thrown_away", ()),
    ],
    never_wraps: [
        ("test_adversary", "explore", (1, 25, True)),
        ("test_bounds", "test_incarnations_go_across_their_wrap", ()),
    ],
    numbers_from_zero_after_the_last: [("test_adversary", "explore", (1, 25, False))],
    goes_on_after_giving_up: [("test_adversary", "explore", (1, 25, False))],
    never_sends_again: [("test_adversary", "explore", (1, 25, False))],
    never_gives_up: [
        ("test_bounds", "test_a_message_to_a_silent_card_comes_back_after_two_scans_for_each_try", ()),
        ("test_deaths", "run_with_death", (1, 100, False, 700)),
    ],
    counts_refusals_as_silence: [
        ("test_transport", "test_refusals_end_no_message_however_many_there_are", ())
    ],
    believes_old_refusals: [
        ("test_transport", "test_a_refusal_of_an_earlier_try_is_not_taken_for_one_of_the_last", ())
    ],
    tells_nobody: [
        ("test_transport", "test_packets_for_an_absent_endpoint_come_at_once_when_it_has_been_loaded", ()),
        ("test_paging", "test_a_message_for_an_absent_endpoint_waits_for_no_scan", ()),
    ],
    absent_endpoints_keep_their_channels: [
        (
            "test_transport",
            "test_many_absent_endpoints_are_all_tried_once_and_each_has_a_channel_when_it_comes",
            (1,),
        )
    ],
    absent_endpoints_wait_for_ever: [
        (
            "test_transport",
            "test_absent_endpoints_without_a_channel_are_tried_again_if_no_invitation_comes",
            (),
        )
    ],
    gives_no_turns: [
        ("test_bounds", "test_an_endpoint_whose_receiver_takes_nothing_does_not_stop_others", (1, 1, False)),
        ("test_bounds", "test_endpoints_that_are_stuck_take_turns", ()),
    ],
    lets_the_refused_have_all: [
        ("test_bounds", "test_an_endpoint_whose_receiver_takes_nothing_does_not_stop_others", (4, 1, False))
    ],
    serves_one_source_first: [("test_bounds", "test_endpoints_that_are_stuck_take_turns", ())],
    one_group_for_both: [
        ("test_bounds", "test_requests_that_are_refused_hold_up_no_reply", ()),
        ("test_deaths", "test_requests_that_are_refused_until_a_reply_has_left_are_no_deadlock", ()),
    ],
    begins_tries_anew: [
        (
            "test_bounds",
            "test_a_message_to_a_silent_card_comes_back_though_its_endpoint_is_unloaded_all_the_while",
            (False,),
        )
    ],
    forgets_that_a_card_is_down: [
        ("test_bounds", "test_all_messages_to_a_card_that_is_down_come_back_and_later_ones_after_one_try", ())
    ],
    keeps_abandoned_messages: [
        ("test_transport", "test_an_abandoned_endpoint_is_quiet_at_once_and_its_channels_are_free_later", ())
    ],
    sends_the_old_messages_to_a_new_life: [
        ("test_adversary", "explore", (1, 25, True)),
        (
            "test_transport",
            "test_a_card_that_was_started_again_takes_no_copy_of_what_it_had_taken_before",
            (),
        ),
    ],
    stamps_by_the_clock_alone: [
        ("test_bounds", "test_stamps_go_across_their_wrap_and_no_two_tries_have_the_same", ())
    ],
}


@pytest.mark.parametrize(
    ("mutation", "module", "name", "args"),
    [
        pytest.param(mutation, *check, id=f"{mutation.__name__}-{check[1]}")
        for mutation, checks in MUTATIONS.items()
        for check in checks
    ],
)
def test_a_mutation_is_found(mutation, module, name, args, monkeypatch):
    check = getattr(checks_of(module), name)
    with monkeypatch.context() as patch:
        mutation(patch)
        with pytest.raises(FAILURES):
            check(*args)


def test_the_same_checks_pass_without_a_mutation():
    """Those with seeds; all others are tests of their own."""
    assert channels.FIRST_SEQUENCE > SEQUENCE_MODULUS // 2
    for restarts in (False, True):
        checks_of("test_adversary").explore(1, 25, restarts)
    checks_of("test_deaths").run_with_death(1, 100, False, 700)
