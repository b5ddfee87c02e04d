"""Mutants of virtual networks: of the program `am`, of its hosts, and of the experiments' programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .mutant import mutant


def _costs(times: int, steps: Iterable[str]) -> None:
    """Make steps of the program take so many times their cycles."""
    from lanikai.firmware.am.costs import AM_COSTS

    assert isinstance(AM_COSTS.table, dict)
    AM_COSTS.table.update({step: times * AM_COSTS.table[step] for step in steps})


def _hosts(experiment: Any, **changes: int) -> None:
    """Start the hosts of an experiment's module with other costs and choices."""
    from lanikai.sim.host.am.config import AmHostConfig

    right = experiment.start_am

    def start(cluster: Any, config: Any = None, costs: Any = None, **others: Any) -> Any:
        return right(cluster, config, (costs or AmHostConfig()).replace(**changes), **others)

    experiment.start_am = start


@mutant
def acknowledgements_cost_nothing(spec: Mapping[str, Any]) -> None:
    """The steps of reliability take no cycles but those of their accesses."""
    from lanikai.firmware.am.costs import RELIABILITY_STEPS

    _costs(0, RELIABILITY_STEPS)


@mutant
def checks_take_ten_times_as_long(spec: Mapping[str, Any]) -> None:
    """The checks of messages that are sent and of those that come."""
    from lanikai.firmware.am.costs import PROTECTION_STEPS

    _costs(10, PROTECTION_STEPS)


@mutant
def a_process_is_slower_than_its_card(spec: Mapping[str, Any]) -> None:
    """A request or a reply costs its process 20 us beside its accesses."""
    from lanikai.sim.experiments.am import logp

    _hosts(logp, request_ns=20_000)


@mutant
def streaming_buffers_are_never_flushed(spec: Mapping[str, Any]) -> None:
    """Nothing is paid for them."""
    from lanikai.sim.experiments.am import bandwidth

    bandwidth.FLUSH_NS = 0


@mutant
def flushing_takes_half_a_millisecond(spec: Mapping[str, Any]) -> None:
    """Streaming buffers are flushed, which takes longer than a message of 8 KB."""
    from lanikai.sim.experiments.am import bandwidth

    bandwidth.FLUSH_NS = 500_000


@mutant
def copies_take_the_square_of_their_length(spec: Mapping[str, Any]) -> None:
    """A copy of 8 KB takes 64 times as long as one of 1 KB."""
    from lanikai.sim.host.am.config import AmHostConfig

    right = AmHostConfig.copy_ns
    AmHostConfig.copy_ns = lambda self, length: right(self, length) * length // 1024  # type: ignore[method-assign]


@mutant
def a_process_has_8_credits_whatever_it_was_given(spec: Mapping[str, Any]) -> None:
    """So messages overlap that should go one at a time."""
    from lanikai.sim.experiments.am import bandwidth

    _hosts(bandwidth, credits=8)


@mutant
def finding_the_data_takes_half_a_millisecond(spec: Mapping[str, Any]) -> None:
    """The card takes 20,000 cycles for the place of a message's data, before it starts their DMA."""
    from lanikai.firmware.am.costs import AM_COSTS

    assert isinstance(AM_COSTS.table, dict)
    AM_COSTS.table.update(send_data=20_000)


@mutant
def messages_to_nodes_far_off_take_longer_to_build(spec: Mapping[str, Any]) -> None:
    """A packet to another node than a neighbour costs ten times as much."""
    from lanikai.firmware.am.sender import Sender

    right = Sender._build

    def build(self: Any, packet: Any) -> None:
        if abs(packet.header.destination - self.state.node) > 1:
            self.state.script.pay("send_message", 9)
        right(self, packet)

    Sender._build = build  # type: ignore[method-assign]


@mutant
def no_pair_is_across_the_bisection(spec: dict[str, Any]) -> None:
    """Every node's partner is its neighbour."""
    from lanikai.sim.experiments.am.permutations import partners

    spec["partners"] = partners("neighbor", len(spec["partners"]))


@mutant
def a_message_costs_a_look_at_every_sender(spec: Mapping[str, Any]) -> None:
    """A card looks at each card that has ever sent to it when a message comes."""
    from lanikai.firmware.am.receiver import Receiver

    right, senders = Receiver._deliver, defaultdict[int, set[int]](set)

    def deliver(self: Any, fresh: Any, buffer: int) -> None:
        known = senders[self.state.node]
        known.add(fresh.node)
        self.state.script.pay("receive_message", len(known))
        right(self, fresh, buffer)

    Receiver._deliver = deliver  # type: ignore[method-assign]


@mutant
def a_lone_client_is_slow(spec: Mapping[str, Any]) -> None:
    """Where there is one client alone, a request or a reply costs its process 100 us."""
    from lanikai.sim.experiments.am import contention

    if spec["clients"] == 1:
        _hosts(contention, request_ns=100_000)


@mutant
def one_client_is_refused(spec: Mapping[str, Any]) -> None:
    """Node 0 has never room for the requests of node 1."""
    from lanikai.firmware.am.receiver import Receiver
    from lanikai.firmware.am.wire import Reason

    right = Receiver._refusal

    def refusal(self: Any, fresh: Any, frame: Any) -> Any:
        reason = right(self, fresh, frame)
        refused = self.state.node == 0 and fresh.node == 1 and not fresh.header.reply
        return Reason.NO_BUFFER if refused and reason is Reason.DELIVERED else reason

    Receiver._refusal = refusal  # type: ignore[method-assign]


@mutant
def a_woken_thread_takes_a_millisecond(spec: Mapping[str, Any]) -> None:
    """From the event to its running again."""
    from lanikai.sim.experiments.am import virtual_networks

    _hosts(virtual_networks, wake_ns=1_000_000)


@mutant
def mapping_a_page_takes_a_millisecond(spec: Mapping[str, Any]) -> None:
    """So does unmapping it: the frames of a host that moves endpoints are empty for long."""
    from lanikai.sim.experiments.am import virtual_networks

    _hosts(virtual_networks, map_ns=1_000_000)


@mutant
def semaphores_are_never_posted(spec: Mapping[str, Any]) -> None:
    """A thread that waits for its semaphore sleeps for ever."""
    from lanikai.sim.host.am.process import Bundle

    Bundle.post = lambda self: None  # type: ignore[method-assign]


@mutant
def the_driver_forgets_a_frame(spec: Mapping[str, Any]) -> None:
    """The last frame of the card is never used."""
    from lanikai.sim.host.am.pager import Pager

    right = Pager.__init__

    def begin(self: Any, *arguments: Any, **options: Any) -> None:
        right(self, *arguments, **options)
        del self.frames[max(self.frames)]

    Pager.__init__ = begin  # type: ignore[method-assign]
