"""The calls of Active Messages II on cards in plain Python: three kinds of messages, handlers, credits, errors."""

from __future__ import annotations

import pytest
from lanikai.firmware.am.wire import Reason
from lanikai.sim.host.am import amii
from lanikai.sim.host.am.errors import AmCode, AmOpcode, AmStatus
from lanikai.sim.host.am.ledger import EndpointName
from lanikai.sim.host.am.process import EventMask
from support.sim.am_nodes import AmNodes
from support.sim.am_processes import ANSWER, ECHO, Party, code_of, pair, run, serve


def test_requests_and_replies_of_three_kinds(make):
    """Words arrive as they were sent. Medium data are at the pointer, bulk data at their offset of the segment."""
    net, seen = make(), []

    async def test():
        a, b = await pair(net)
        memory = b.process.allocate(200)
        await amii.AM_SetSeg(b.endpoint, memory)
        mine = a.process.allocate(64)
        await amii.AM_SetSeg(a.endpoint, mine)

        async def medium(token, pointer, length, *words):
            seen.append(("medium", pointer.read(length), words))
            await amii.AM_ReplyI(token, 4, b"back" + pointer.read(length), 9)

        async def bulk(token, pointer, length, *words):
            seen.append(("bulk", pointer.start - memory.start, length, words))
            await amii.AM_ReplyXfer(token, 8, 5, b"bulk back", 1)

        def medium_answer(token, pointer, length, *words):
            seen.append(("medium answer", pointer.read(length), words))

        def bulk_answer(token, pointer, length, *words):
            seen.append(("bulk answer", pointer.read(length), words))

        for end, index, handler in (
            (b, 3, medium),
            (a, 4, medium_answer),
            (b, 6, bulk),
            (a, 5, bulk_answer),
        ):
            await amii.AM_SetHandler(end.endpoint, index, handler)
        await amii.AM_Request8(a.endpoint, 0, ECHO, *range(8))
        await amii.AM_Request4(a.endpoint, 0, ECHO, -1, 2, 3, 4)
        await a.until(lambda: len(a.answers) == 2)
        assert sorted(a.answers) == [tuple(range(8)), (0xFFFFFFFF, 2, 3, 4)] and a.answers == b.heard
        await amii.AM_RequestI(a.endpoint, 0, 3, b"some data", 1, 2)
        await a.until(lambda: len(seen) == 2)
        await amii.AM_RequestXfer(a.endpoint, 0, 100, 6, b"more data", 3)
        await a.until(lambda: len(seen) == 4)
        assert seen == [
            ("medium", b"some data", (1, 2)),
            ("medium answer", b"backsome data", (9,)),
            ("bulk", 100, 9, (3,)),
            ("bulk answer", b"bulk back", (1,)),
        ]
        assert memory.read(9, 100) == b"more data" and mine.read(9, 8) == b"bulk back"
        assert a.credits_home and not a.back and not b.back

    run(net, test)


def test_a_destination_has_four_credits_and_every_request_is_answered(make):
    """The fifth request waits for a reply. A handler that does not reply is answered for by the library."""
    net = make()

    async def test():
        a, b = await pair(net, serves=False)
        silent = []
        await amii.AM_SetHandler(b.endpoint, 9, lambda token, *words: silent.append(words))
        for word in range(4):
            await a.send(word, handler=9)
        to = a.endpoint.ledger.destination(b.endpoint.name)
        assert (to.credits, to.waiting) == (0, 4)
        sent = []

        async def fifth():
            await a.send(4, handler=9)
            sent.append(net.world.cycle)

        net.world.spawn(fifth(), "fifth")
        await net.world.sleep(20_000)
        assert not sent and not silent
        await b.until(lambda: silent)
        await net.world.sleep(20_000)
        assert sent
        await b.until(lambda: len(silent) == 5)
        await a.until(lambda: a.credits_home)
        assert to.credits == 4 and not a.answers and sorted(silent) == [(word,) for word in range(5)]

    run(net, test)


def test_a_reply_only_from_the_handler_of_a_request_and_once(make):
    net = make()

    async def test():
        a, b = await pair(net)
        codes, kept = [], []

        async def twice(token, *words):
            kept.append(token)
            await amii.AM_Reply(token, ANSWER, 1)
            codes.append(await code_of(amii.AM_Reply(token, ANSWER, 2), "it has its reply"))

        async def to_a_reply(token, *words):
            codes.append(await code_of(amii.AM_Reply(token, ANSWER, 3), "it is no request"))
            a.answers.append(words)

        await amii.AM_SetHandler(b.endpoint, 9, twice)
        await amii.AM_SetHandler(a.endpoint, ANSWER, to_a_reply)
        await a.send(1, handler=9)
        await a.until(lambda: a.answers)
        await net.world.sleep(5000)
        await amii.AM_Poll(a.bundle)
        codes.append(await code_of(amii.AM_Reply(kept[0], ANSWER, 4), "its handler has returned"))
        assert codes == [AmCode.AM_ERR_NOT_SENT] * 3 and a.answers == [(1,)]

    run(net, test)


def test_no_request_from_inside_a_handler(make):
    """Neither of a request's handler, nor a reply's, nor the error handler. Another thread's goes out meanwhile."""
    net = make()

    async def test():
        a, b = await pair(net)
        c = await Party.open(net.drivers[1], 12)
        for party in (b, c):
            await party.map(a, 3)
        seen, own = [], []

        def says(index):
            return f"from inside handler {index} of endpoint"

        async def hears(token, *words):
            seen.append(await code_of(b.send(1, index=3), says(9)))
            seen.append(await code_of(c.send(1, index=3), says(9)))
            await net.world.sleep(5_000)
            await amii.AM_Reply(token, ANSWER, *words)
            seen.append(await code_of(b.send(1, index=3), says(9)))

        async def heard(token, *words):
            seen.append(await code_of(a.send(1), says(ANSWER)))

        async def back(status, opcode, token):
            await net.world.sleep(10)
            seen.append(await code_of(a.send(1), says(ECHO)))

        async def beside():
            while not seen:
                await net.world.sleep(100)
            await b.send(77, index=3)
            own.append(len(seen))

        for end, index, handler in ((b, 9, hears), (a, ANSWER, heard), (a, 0, back)):
            await amii.AM_SetHandler(end.endpoint, index, handler)
        net.world.spawn(beside(), "beside")
        await amii.AM_Map(a.endpoint, 1, b.endpoint.name, 99)
        await a.send(1, handler=9)
        await a.until(lambda: len(seen) == 4)
        await a.send(1, index=1)
        await a.until(lambda: len(seen) == 5)
        await a.until(lambda: a.credits_home and a.heard)
        assert seen == [AmCode.AM_ERR_NOT_SENT] * 5 and own == [2] and a.heard == [(77,)] and not b.heard
        await a.send(2)
        await a.until(lambda: b.heard)

    run(net, test)


def test_endpoints_of_one_host_talk_unless_its_card_has_one_frame(make):
    net, small = make(), make(config={"frames": 1})

    async def talk():
        a, b = [await Party.open(net.drivers[0]) for _ in range(2)]
        net.world.spawn(serve(b), "serve")
        await a.map(b)
        await a.map(a, 1)
        for word in range(10):
            await a.send(word, index=word % 2)
        await a.until(lambda: len(a.answers) == 10)
        assert len(b.heard) == len(a.heard) == 5

    async def refused():
        a, b = [await Party.open(small.drivers[0]) for _ in range(2)]
        says = "endpoint 1 of node 0: a translation to endpoint 2 of its own card: both must be in a frame"
        assert await code_of(a.map(b), says) is AmCode.AM_ERR_RESOURCE
        await a.map(a)
        await a.send(1)
        await a.until(lambda: a.answers)

    run(net, talk)
    run(small, refused)


def test_expected_resources_are_credits(make):
    net = make()

    async def test():
        a, b = await pair(net, serves=False)
        entries = net.config.queue_entries
        for call, says, code in (
            ((entries + 1, 0), "requests = 0: 1 to", AmCode.AM_ERR_BAD_ARG),
            ((1, entries + 1), f"{entries + 1} requests to each: at most {entries}", AmCode.AM_ERR_RESOURCE),
            ((4097, 1), "4097 endpoints: at most 4096", AmCode.AM_ERR_RESOURCE),
        ):
            assert await code_of(amii.AM_SetExpectedResources(a.endpoint, *call), says) is code
        await amii.AM_SetExpectedResources(a.endpoint, 1, 2)
        await a.map(b, 5)
        to = a.endpoint.ledger.destination(b.endpoint.name)
        for word in range(2):
            await a.send(word, index=5)
        assert to.credits == 0
        says = "2 requests wait for their replies"
        code = await code_of(amii.AM_SetExpectedResources(a.endpoint, 1, 3), says)
        assert code is AmCode.AM_ERR_IN_USE
        net.world.spawn(serve(b), "serve")
        await a.until(lambda: a.credits_home)
        await amii.AM_SetExpectedResources(a.endpoint, 8, entries)
        assert to.credits == entries

    run(net, test)


@pytest.mark.parametrize("reply", [False, True])
def test_a_message_whose_data_the_receivers_bus_refuses_comes_back_to_its_sender(reply):
    """Both processes hear of a reply that does, and the request's credit comes home. Later messages come as ever."""
    net = AmNodes()

    async def test():
        a, b = await pair(net)

        async def answers(token, pointer, length):
            b.heard.append(pointer.read(length))
            await amii.AM_ReplyI(token, 4, b"answer" * 4)

        def answer(token, pointer, length):
            a.answers.append(pointer.read(length))

        await amii.AM_SetHandler(b.endpoint, 3, answers)
        await amii.AM_SetHandler(a.endpoint, 4, answer)
        hit, sender = (a, b) if reply else (b, a)
        staging = hit.endpoint.page.endpoint.memory.receive_staging
        card = net.cards[hit.endpoint.name.node]
        card.bad_addresses |= set(range(staging.start, staging.start + staging.length))
        await amii.AM_RequestI(a.endpoint, 0, 3, b"request")
        await a.until(lambda: a.credits_home and sender.back)
        ((status, opcode, token),) = sender.back
        assert status is AmStatus.EHOSTBUS and token.is_request != reply and not a.answers
        assert opcode is (AmOpcode.AM_REPLY_IM if reply else AmOpcode.AM_REQUEST_IM)
        if reply:
            ((status, opcode, token),) = a.back
            assert status is AmStatus.EHOSTBUS and opcode is AmOpcode.AM_REPLY_IM and len(b.heard) == 1
            assert (token.source, token.destination) == (b.endpoint.name, a.endpoint.name)
        else:
            assert not b.heard and not b.back and token.data == b"request"
        card.bad_addresses.clear()
        for _ in range(40):
            await amii.AM_RequestI(a.endpoint, 0, 3, b"request")
        await a.until(lambda: len(a.answers) == 40)
        assert a.credits_home and (a.endpoint.strays, b.endpoint.strays) == (0, 0)

    run(net, test)


def test_a_handler_that_raises_is_answered_for_and_its_error_comes_out_of_the_poll(make):
    net = make()

    async def test():
        a, b = await pair(net, serves=False)

        async def broken(token, *words):
            raise ZeroDivisionError("the handler's own")

        await amii.AM_SetHandler(b.endpoint, 9, broken)
        await a.send(1, handler=9)
        await a.send(2)
        errors = 0
        while not b.heard or not errors:
            try:
                await amii.AM_Poll(b.bundle)
            except ZeroDivisionError:
                errors += 1
        await a.until(lambda: a.credits_home)
        assert errors == 1 and b.heard == [(2,)] and a.answers == [(2,)]

    run(net, test)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("tag", AmStatus.EBADTAG),
        ("endpoint", AmStatus.EBADENDPOINT),
        ("node", AmStatus.EBADENTRY),
        ("dead", AmStatus.EUNREACHABLE),
        ("offset", AmStatus.EBADSEGOFF),
        ("handler", AmStatus.EBADHANDLER),
    ],
)
def test_a_message_that_cannot_be_delivered_comes_back_with_its_arguments_and_the_reason(make, fault, status):
    net = make(config={"tries": 20})

    async def test():
        a, b = await pair(net)
        if fault == "dead":
            net.cut(1)
        names = {"endpoint": EndpointName(1, 9), "node": EndpointName(5, 1)}
        await amii.AM_Map(a.endpoint, 1, names.get(fault, b.endpoint.name), 99 if fault == "tag" else 11)
        if fault == "offset":
            await amii.AM_RequestXfer(a.endpoint, 1, 4, ECHO, b"data", 1, 2)
        else:
            await a.send(1, 2, index=1, handler=77 if fault == "handler" else ECHO)
        await a.until(lambda: a.back and a.credits_home)
        ((found, opcode, token),) = a.back
        assert found is status and token.words == (1, 2) and token.is_request
        assert opcode is (AmOpcode.AM_REQUEST_XFER_M if fault == "offset" else AmOpcode.AM_REQUEST_M)
        assert token.destination == names.get(fault, b.endpoint.name)
        assert token.data == (b"data" if fault == "offset" else None)
        assert token.handler == (77 if fault == "handler" else ECHO)
        assert a.endpoint.returned == 1 and not b.heard
        assert (token.reason != 0) == (fault != "handler") and Reason(token.reason) is not Reason.VOID

    run(net, test)


def test_without_an_error_handler_the_poll_raises(make):
    net = make()

    async def test():
        a, _ = await pair(net)
        del a.endpoint.handlers[0]
        await amii.AM_Map(a.endpoint, 1, EndpointName(1, 9), 1)
        await a.send(1, index=1)
        says = "AM_REQUEST_M to endpoint 9 of node 1 came back: EBADENDPOINT"
        assert await code_of(a.until(lambda: False), says) is AmCode.AM_ERR_NOT_SENT
        assert a.credits_home

    run(net, test)


def test_wrong_arguments_are_refused_in_one_line(make):
    net = make()

    async def test():
        a, b = await pair(net)
        bad = AmCode.AM_ERR_BAD_ARG
        most = amii.AM_MaxMedium(net.drivers[0])
        for call, says in (
            (amii.AM_Request(a.endpoint, 0, ECHO, *range(9)), "9 words: at most 8"),
            (amii.AM_Request(a.endpoint, 0, 0), "handler = 0: 1 to 253"),
            (amii.AM_Request(a.endpoint, 0, 1, 1 << 32), "word = 4294967296"),
            (amii.AM_Request(a.endpoint, 5, 1), "translation 5 leads nowhere"),
            (amii.AM_Request8(a.endpoint, 0, 1, 1), "1 words: 8"),
            (amii.AM_RequestI(a.endpoint, 0, 1, bytes(most + 1)), f"at most {most} in a message"),
            (amii.AM_RequestI(a.endpoint, 0, 1, "text"), "data of type str"),
            (amii.AM_SetHandler(a.endpoint, 254, print), "handler = 254"),
            (amii.AM_SetHandler(a.endpoint, 3, 3), "something that can be called"),
            (amii.AM_SetTag(a.endpoint, 1 << 32), "tag = 4294967296"),
            (amii.AM_Map(a.endpoint, 0, EndpointName(1, 1 << 12), 1), None),
            (amii.AM_SetSeg(a.endpoint, b.process.allocate(8)), "its process' own"),
            (a.endpoint.page.write_all([(1 << 13, 0)]), "a multiple of 4 below"),
        ):
            code = await code_of(call, says)
            assert code is (AmCode.AM_ERR_IN_USE if says is None else bad)

    run(net, test)


def test_translations_tags_and_handlers_are_kept_and_taken_back(make):
    net = make()

    async def test():
        a, b = await pair(net)
        ep = a.endpoint
        index = await amii.AM_MapAny(ep, b.endpoint.name, 11)
        assert index == 1 and await amii.AM_GetTranslationInuse(ep, 1)
        assert await amii.AM_GetTranslationName(ep, 1) == b.endpoint.name
        await amii.AM_SetTranslationTag(ep, 1, 12)
        assert await amii.AM_GetTranslationTag(ep, 1) == 12
        await amii.AM_UnMap(ep, 1)
        assert not await amii.AM_GetTranslationInuse(ep, 1)
        assert await amii.AM_SetHandlerAny(ep, print) == 3
        await amii.AM_SetTag(b.endpoint, 30)
        assert await amii.AM_GetTag(b.endpoint) == 30
        await a.send(1)
        await a.until(lambda: a.back)
        assert a.back[0][0] is AmStatus.EBADTAG
        await amii.AM_SetTranslationTag(ep, 0, 30)
        await a.send(2)
        await a.until(lambda: a.answers)
        assert a.answers == [(2,)]

    run(net, test)


def test_a_bundle_of_many_endpoints_and_threads(make):
    """Four threads send by one endpoint, four serve one bundle of three. No message is lost or doubled."""
    net = make(3)

    async def test():
        a, b = await pair(net)
        more = [await Party.open(net.drivers[1], 20 + i, b.process) for i in range(2)]
        for place, party in enumerate(more):
            await amii.AM_MoveEndpoint(party.endpoint, party.bundle, b.bundle)
            await a.map(party, 1 + place)
        for _ in range(3):
            net.world.spawn(serve(b), "serve")
        words = range(25)

        async def thread(number):
            for word in words:
                await a.send(number, word, index=word % 3)

        await net.world.gather(*(thread(number) for number in range(4)))
        await a.until(lambda: len(a.answers) == 100)
        expected = sorted((number, word) for number in range(4) for word in words)
        assert sorted(a.answers) == expected
        assert sorted(b.heard + more[0].heard + more[1].heard) == expected and a.credits_home
        assert len(more[1].heard) == 32
        assert (a.endpoint.strays, b.endpoint.strays) == (0, 0)
        assert not net.refused()

    run(net, test)


def test_a_thread_sleeps_until_a_message_comes(make):
    """The semaphore is posted by the first message of an empty queue, and at once for one that is there already."""
    net = make()

    async def test():
        a, b = await pair(net, serves=False)
        handled = []

        async def sleeper():
            while len(handled) < 6:
                await amii.AM_SetEventMask(b.bundle, EventMask.AM_NOTEMPTY)
                assert await amii.AM_WaitSema(b.bundle)
                await amii.AM_SetEventMask(b.bundle, EventMask.AM_NOEVENTS)
                while count := await amii.AM_Poll(b.bundle):
                    handled.extend(range(count))

        net.world.spawn(sleeper(), "sleeper")
        for word in range(6):
            await a.send(word)
            if word == 2:
                await net.world.sleep(30_000)
        await a.until(lambda: len(a.answers) == 6)
        assert net.drivers[1].events >= 2
        assert not await amii.AM_WaitSema(a.bundle, timeout_us=50)

    run(net, test)


def test_two_processes_that_flood_each_other_with_requests_go_on(make):
    """Handlers wait for entries of their reply queues, while replies wait for the room of the other's."""
    net = make(config={"queue_entries": 2}, credits=8)

    async def test():
        a, b = await pair(net, serves=False)

        async def flood(party):
            for word in range(60):
                await party.send(word)
            await party.until(lambda: len(party.answers) == 60)
            while not (len(a.answers) == len(b.answers) == 60):
                await amii.AM_Poll(party.bundle)

        await net.world.gather(flood(a), flood(b))
        assert sorted(a.heard) == sorted(b.heard) == [(word,) for word in range(60)]

    run(net, test)
