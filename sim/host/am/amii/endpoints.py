"""Calls that make, change and end processes, bundles and endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...memory import Buffer
from ..driver import SegmentDriver
from ..endpoint import ERROR_HANDLER, HANDLERS, Endpoint
from ..errors import AmCode, AmError
from ..ledger import EndpointName
from ..process import AmProcess, Bundle, BundleKind
from .checks import MOST_TAG, TRANSLATIONS, bad, number, of_kind

__all__ = [
    "AM_AllocateBundle",
    "AM_AllocateEndpoint",
    "AM_FreeBundle",
    "AM_FreeEndpoint",
    "AM_GetSeg",
    "AM_GetTag",
    "AM_Init",
    "AM_MoveEndpoint",
    "AM_SetExpectedResources",
    "AM_SetHandler",
    "AM_SetHandlerAny",
    "AM_SetSeg",
    "AM_SetTag",
    "AM_Terminate",
]


async def AM_Init(driver: SegmentDriver) -> AmProcess:
    """A process that uses a node's card. It is a system call."""
    of_kind("driver", driver, SegmentDriver)
    process = AmProcess(driver)
    await driver.admit(process)
    return process


async def AM_Terminate(process: AmProcess) -> None:
    """End a process' use of the card: all its bundles, endpoints and memory are taken back."""
    of_kind("process", process, AmProcess)
    process.check()
    for bundle in process.bundles:
        bundle.alive = False
    await process.driver.kill(process)


async def AM_AllocateBundle(process: AmProcess, kind: BundleKind = BundleKind.AM_PAR) -> Bundle:
    """A bundle of endpoints, with a semaphore."""
    of_kind("process", process, AmProcess)
    process.check()
    bundle = Bundle(process, BundleKind(kind))
    process.bundles.append(bundle)
    return bundle


async def AM_FreeBundle(bundle: Bundle) -> None:
    """End a bundle and its endpoints."""
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    bundle.alive = False
    for endpoint in list(bundle.endpoints):
        bundle.remove(endpoint)
        await _free(bundle, endpoint)
    bundle.process.bundles.remove(bundle)
    bundle.post()


async def AM_AllocateEndpoint(bundle: Bundle, tag: int = 0) -> tuple[Endpoint, EndpointName]:
    """An endpoint of a bundle, in host memory, and its name. Messages for it carry `tag`. It is a system call.

    Raises AmError (AM_ERR_RESOURCE) if the host has no memory for another one.
    """
    of_kind("bundle", bundle, Bundle)
    bundle.check()
    driver = bundle.process.driver
    tag = number("tag", tag, MOST_TAG)
    made: list[Endpoint] = []

    def wake() -> None:
        for endpoint in made:
            endpoint.wake()

    page = await driver.create(bundle.process, tag=tag, wake=wake)
    endpoint = Endpoint(driver, page, tag)
    made.append(endpoint)
    if not bundle.alive:
        await driver.destroy(page.endpoint)
        bundle.check()
    bundle.add(endpoint)
    return endpoint, endpoint.name


async def AM_FreeEndpoint(endpoint: Endpoint) -> None:
    """End an endpoint. It is a system call.

    Its own messages that are not delivered yet are forgotten. Those for it come back to their senders; so do requests
    that it has not taken out of its queue, as far as their credits go.
    """
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    for bundle in [one for one in _bundles(endpoint) if endpoint in one.endpoints]:
        bundle.remove(endpoint)
        await _free(bundle, endpoint)


async def _free(bundle: Bundle, endpoint: Endpoint) -> None:
    driver = bundle.process.driver
    await driver.spend(driver.costs.system_call_ns)
    await driver.destroy(endpoint.page.endpoint)


def _bundles(endpoint: Endpoint) -> list[Bundle]:
    owner = endpoint.page.endpoint.owner
    return [
        bundle
        for process in endpoint.driver.processes
        if isinstance(process, AmProcess) and process.number == owner
        for bundle in process.bundles
    ]


async def AM_MoveEndpoint(endpoint: Endpoint, source: Bundle, target: Bundle) -> None:
    """Move an endpoint to another bundle of its process."""
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    target.check()
    if endpoint not in source.endpoints or target.process is not source.process:
        bad(
            f"{endpoint}: it is not in the bundle from which it is to be moved, or the other one is another process'"
        )
    source.remove(endpoint)
    target.add(endpoint)


async def AM_SetExpectedResources(endpoint: Endpoint, endpoints: int, requests: int) -> None:
    """Say with how many endpoints an endpoint will talk, and how many requests to each may wait for their replies.

    So many credits has each destination from now on, instead of `AmHostConfig.credits`. Raises AmError: AM_ERR_RESOURCE
    for more endpoints than translations, or more requests than a queue has entries; AM_ERR_IN_USE while requests wait.
    """
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    endpoints = number("endpoints", endpoints, (1 << 31) - 1, least=1)
    requests = number("requests", requests, (1 << 31) - 1, least=1)
    entries, ledger = endpoint.layout.config.queue_entries, endpoint.ledger
    if endpoints > TRANSLATIONS:
        raise AmError(AmCode.AM_ERR_RESOURCE, f"{endpoint}: {endpoints} endpoints: at most {TRANSLATIONS}")
    if requests > entries:
        raise AmError(AmCode.AM_ERR_RESOURCE, f"{endpoint}: {requests} requests to each: at most {entries}")
    if waiting := sum(to.waiting for to in ledger.destinations.values()):
        raise AmError(AmCode.AM_ERR_IN_USE, f"{endpoint}: {waiting} requests wait for their replies")
    ledger.credits = requests
    for to in ledger.destinations.values():
        to.credits = requests


async def AM_SetTag(endpoint: Endpoint, tag: int) -> None:
    """Give an endpoint another tag: messages that carry the old one come back to their senders.

    It is a system call. The driver unloads the endpoint for it.
    """
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    endpoint.tag = tag = number("tag", tag, MOST_TAG)
    await endpoint.driver.change_record(endpoint.page.endpoint, tag=tag)
    endpoint.check()


async def AM_GetTag(endpoint: Endpoint) -> int:
    """Its tag."""
    endpoint.check()
    return endpoint.tag


async def AM_SetSeg(endpoint: Endpoint, segment: Buffer | None) -> None:
    """Declare an endpoint's segment: memory of its process into which bulk messages may write. None: none.

    It is a system call. The driver unloads the endpoint for it.
    """
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    if segment is not None:
        of_kind("segment", segment, Buffer)
        owner = next(one for one in endpoint.driver.processes if one.number == endpoint.page.endpoint.owner)
        if not owner.owns(segment):
            bad(f"{endpoint}: memory at {segment.start:#x} for its segment: its process' own")
    start, length = (0, 0) if segment is None else (segment.start, segment.length)
    await endpoint.driver.change_record(endpoint.page.endpoint, segment=start, segment_bytes=length)
    endpoint.segment = segment
    endpoint.check()


async def AM_GetSeg(endpoint: Endpoint) -> Buffer | None:
    """Its segment."""
    endpoint.check()
    return endpoint.segment


async def AM_SetHandler(endpoint: Endpoint, index: int, handler: Callable[..., Any]) -> None:
    """Have `handler` called of messages that name `index`. Index 0 is the handler of messages that come back.

    A handler of short messages is called with its token and the words. One of medium and bulk messages has the data
    (`Buffer`) and their length between the two. The error handler is called with `AmStatus`, `AmOpcode` and the token.
    """
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    if not callable(handler):
        bad(f"{endpoint}: handler {index} = {handler!r}: something that can be called")
    endpoint.handlers[number("handler", index, HANDLERS - 1)] = handler


async def AM_SetHandlerAny(endpoint: Endpoint, handler: Callable[..., Any]) -> int:
    """Set a handler at an index that is free; returns the index."""
    for index in range(ERROR_HANDLER + 1, HANDLERS):
        if index not in endpoint.handlers:
            await AM_SetHandler(endpoint, index, handler)
            return index
    raise AmError(AmCode.AM_ERR_RESOURCE, f"{endpoint}: all {HANDLERS - 1} handlers are in use")
