"""Calls of the translation table: from an index to an endpoint and a tag."""

from __future__ import annotations

from ..endpoint import Endpoint, Translation
from ..errors import AmCode, AmError
from ..ledger import EndpointName
from .checks import MOST_TAG, TRANSLATIONS, bad, name_of, number, of_kind

__all__ = [
    "AM_GetTranslationInuse",
    "AM_GetTranslationName",
    "AM_GetTranslationTag",
    "AM_Map",
    "AM_MapAny",
    "AM_SetTranslationTag",
    "AM_UnMap",
]


async def AM_Map(endpoint: Endpoint, index: int, name: EndpointName, tag: int) -> None:
    """Let `index` lead to an endpoint; messages to it carry `tag`. Raises AmError (AM_ERR_IN_USE) if it leads
    somewhere."""
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    index = number("index", index, TRANSLATIONS - 1)
    local = isinstance(name, EndpointName) and name.node == endpoint.name.node and name != endpoint.name
    if local and endpoint.layout.config.frames < 2:
        raise AmError(
            AmCode.AM_ERR_RESOURCE,
            f"{endpoint}: a translation to endpoint {name.number} of its own card: both must be in a frame, and the "
            "card has one",
        )
    if index in endpoint.translations:
        raise AmError(AmCode.AM_ERR_IN_USE, f"{endpoint}: translation {index} is in use: AM_UnMap first")
    to = endpoint.ledger.destination(name_of(endpoint, name))
    endpoint.translations[index] = Translation(to, number("tag", tag, MOST_TAG))


async def AM_MapAny(endpoint: Endpoint, name: EndpointName, tag: int) -> int:
    """Let a free index lead to an endpoint; returns the index."""
    index = next((one for one in range(TRANSLATIONS) if one not in endpoint.translations), None)
    if index is None:
        raise AmError(AmCode.AM_ERR_RESOURCE, f"{endpoint}: all {TRANSLATIONS} translations are in use")
    await AM_Map(endpoint, index, name, tag)
    return index


async def AM_UnMap(endpoint: Endpoint, index: int) -> None:
    """Let an index lead nowhere. Requests that are under way go on."""
    translation(endpoint, index)
    del endpoint.translations[index]


async def AM_GetTranslationName(endpoint: Endpoint, index: int) -> EndpointName:
    """The endpoint to which an index leads."""
    return translation(endpoint, index).destination.name


async def AM_GetTranslationTag(endpoint: Endpoint, index: int) -> int:
    """The tag of messages to it."""
    return translation(endpoint, index).tag


async def AM_SetTranslationTag(endpoint: Endpoint, index: int, tag: int) -> None:
    """Give messages to it another tag."""
    translation(endpoint, index).tag = number("tag", tag, MOST_TAG)


async def AM_GetTranslationInuse(endpoint: Endpoint, index: int) -> bool:
    """Whether an index leads somewhere."""
    endpoint.check()
    return number("index", index, TRANSLATIONS - 1) in endpoint.translations


def translation(endpoint: Endpoint, index: int) -> Translation:
    """The translation of an index. Raises AmError if it leads nowhere."""
    of_kind("endpoint", endpoint, Endpoint)
    endpoint.check()
    found = endpoint.translations.get(number("index", index, TRANSLATIONS - 1))
    if found is None:
        bad(f"{endpoint}: translation {index} leads nowhere: AM_Map first")
    return found
