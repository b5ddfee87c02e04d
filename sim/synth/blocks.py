"""The blocks that `lanikai synth` can synthesize, by name, each with its parameters.

A new one is a line in `BLOCKS`; every VL arbiter in `VL_ARBITERS` is there by itself. The RTL of the other blocks is
imported when one of them is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config, ConfigError, HcaConfig, NicConfig, RouterConfig, preset, preset_names
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from pydantic import Field

from ..errors import UserError
from ..experiments.framework.parameters import ranges
from ..names import hint, unknown

if TYPE_CHECKING:
    from amaranth.lib import wiring

__all__ = ["BLOCKS", "Block", "VlArbiterSettings", "configure", "find_block"]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block to synthesize.

    - `about`: the block in a line.
    - `part`: its parameters, a configuration class.
    - `preset`: the preset to start from (None: the class's defaults).
    - `make`: a component from a configuration.
    - `external`: modules whose memories are left out and become ports. Key: the Verilog name below the block, `sram`.
      Value: functions that give its rows and its bits a row for a configuration. Such a memory has a port to read and
      one to write.
    """

    about: str
    part: type[Config]
    make: Callable[[Any], wiring.Component]
    preset: str | None = None
    external: Mapping[str, Callable[[Any], tuple[int, int]]] = field(default_factory=dict)


class VlArbiterSettings(Config):
    """Parameters of a VL arbiter by itself."""

    vls: int = Field(16, ge=1, le=16, description="virtual lanes")
    flit_bytes: int = Field(16, ge=4, le=16, description="payload of a flit, bytes: 4, 8 or 16")
    entries: int = Field(64, ge=1, le=64, description="entries of each table")


def _router(config: RouterConfig) -> wiring.Component:
    from lanikai.hdl.router.router import Router

    return Router(config)


def _nic(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.nic import Nic

    return Nic(config)


def _rate_control(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.rate.control import make_rate_control

    return make_rate_control(config)


def _link_port(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.link_port.registered_port import make_port

    return make_port(config, downstream_flits=10)


def _doorbell(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.doorbell import Doorbell

    return Doorbell(config)


def _host_dma(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.dma.host_dma import HostDma

    return HostDma(config)


def _hca(config: HcaConfig) -> wiring.Component:
    from lanikai.hdl.hca.hca import Hca

    return Hca(config, downstream_flits=10)


def _with(config: NicConfig, **fields: Any) -> NicConfig:
    """`config` with those of `fields` set that it lacks (they are 0)."""
    return config.replace(**{name: value for name, value in fields.items() if not getattr(config, name)})


def _dma_queue(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.dma.host_dma import HOST_DMA_COMMAND
    from lanikai.hdl.nic.queues.dma_queue import DmaQueue

    config = _with(config, host_dma_queue_entries=32)
    return DmaQueue(
        HOST_DMA_COMMAND,
        1,
        entries=config.host_dma_queue_entries,
        order=config.host_dma_queue_order,
        stamp_bits=config.rtc_bits,
        registered=config.pipelined,
    )


def _completion(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.owners.completion import Completion

    return Completion(_with(config, owners=16, completion_queues=16))


def _protection(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.owners.protection import Protection

    return Protection(_with(config, owners=16, regions=64))


def _translation(config: NicConfig) -> wiring.Component:
    from lanikai.hdl.nic.owners.translation import Translation

    return Translation(_with(config, owners=16, regions=64))


def _vl_arbiter(name: str) -> Block:
    def make(settings: VlArbiterSettings) -> wiring.Component:
        from lanikai.hdl.vl_arbiter.registry import make_vl_arbiter

        return make_vl_arbiter(
            name, vls=settings.vls, flit_bytes=settings.flit_bytes, entries=settings.entries
        )

    return Block(about=f"the VL arbiter {name} of a port", part=VlArbiterSettings, make=make)


TWO_LEVEL = {"table_fast": "two-level", "table_slow": "two-level-slow", "table_iba": "two-level-iba"}
"""Names on the command line of the VL arbiters with tables; every other arbiter keeps its own."""


def _vl_arbiter_block(name: str) -> str:
    """The block that is the VL arbiter called `name` in `VL_ARBITERS`."""
    return f"vl-arbiter/{TWO_LEVEL.get(name, name).replace('_', '-')}"


BLOCKS: Mapping[str, Block] = {
    "router": Block(about="the five-stage router", part=RouterConfig, make=_router, preset="lanai4"),
    "nic": Block(
        about="the network interface card, its SRAM outside",
        part=NicConfig,
        make=_nic,
        preset="lanai7",
        external={"sram": lambda config: (config.sram_words, 8 * config.word_bytes)},
    ),
    "hca": Block(
        about="the host channel adapter, its buffers inside", part=HcaConfig, make=_hca, preset="yum2006"
    ),
    "rate-control": Block(
        about="the rate control unit, up to 1024 flows", part=NicConfig, make=_rate_control, preset="lanai4"
    ),
    "link-port": Block(about="the card's end of its link", part=NicConfig, make=_link_port, preset="iba"),
    "doorbell": Block(about="the doorbell unit", part=NicConfig, make=_doorbell, preset="lanai4"),
    "host-dma": Block(about="the host DMA engine", part=NicConfig, make=_host_dma, preset="lanai4"),
    "dma-queue": Block(
        about="the queue before the host DMA engine (32 entries)",
        part=NicConfig,
        make=_dma_queue,
        preset="lanai7",
    ),
    "completion": Block(
        about="the completion unit (16 queues)", part=NicConfig, make=_completion, preset="lanai7"
    ),
    "protection": Block(
        about="the protection unit (64 regions)", part=NicConfig, make=_protection, preset="lanai7"
    ),
    "translation": Block(
        about="the translation unit (64 regions)", part=NicConfig, make=_translation, preset="lanai7"
    ),
    **{_vl_arbiter_block(name): _vl_arbiter(name) for name in VL_ARBITERS},
}
"""The blocks, by the name that the command line takes."""


def find_block(name: str, blocks: Mapping[str, Block] = BLOCKS) -> Block:
    """The block `name`. Raises UserError with the valid names."""
    if name not in blocks:
        raise unknown("block", name, blocks)
    return blocks[name]


def configure(name: str, settings: Iterable[str], blocks: Mapping[str, Block] = BLOCKS) -> Config:
    """The configuration of the block `name` of `blocks` with `settings`, `key=value` each.

    Keys are the fields of its configuration and of those in it (its link, `vls=4`), and `preset`. Values are JSON, or
    plain text. Raises UserError: what is wrong, and the key's values, or every valid key with its range.
    """
    block = find_block(name, blocks)
    sections = _sections(block.part)
    own = {
        key: text
        for _, part in reversed(sections)
        for key, text in ranges(part).items()
        if not _is_section(part, key)
    }
    own = {key: own[key] for _, part in sections for key in part.model_fields if key in own}
    presets = {"preset": ", ".join(_preset_names(block.part))} if block.preset else {}
    valid = ", ".join(f"{key} ({text})" for key, text in (presets | own).items())
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"--set {setting!r}: not of the form key=value; valid: {valid}")
        if key not in own | presets:
            meant = hint(key, own | presets)
            raise UserError(f"--set {setting!r}: unknown parameter {key!r} of {name}{meant}; valid: {valid}")
        if key in values:
            raise UserError(f"--set {setting!r}: {key!r} is set twice")
        values[key] = _value(text)
    try:
        start = _preset(block.part, values.pop("preset", block.preset)) if block.preset else block.part()
        return _changed(start, values)
    except ConfigError as error:
        text = str(error)
        wrong = next((key for key in values if f".{key} = " in text), None)
        right = f"; {wrong}: {own[wrong]}" if wrong in own and own[wrong] not in text else ""
        raise UserError(f"{name}: {text}{right}") from None


def _is_section(part: type[Config], key: str) -> bool:
    """Whether a field is a configuration itself, whose fields are set and not it."""
    kind = part.model_fields[key].annotation
    return isinstance(kind, type) and issubclass(kind, Config)


def _sections(part: type[Config], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], type[Config]]]:
    """`part` and the configurations in it, each with the names of the fields that lead to it."""
    inner = [key for key in part.model_fields if _is_section(part, key)]
    below = [
        one
        for key in inner
        for one in _sections(part.model_fields[key].annotation, (*path, key))  # type: ignore[arg-type]
    ]
    return [(path, part), *below]


def _changed(config: Config, values: Mapping[str, Any]) -> Config:
    """`config` with these fields of it and of the configurations in it."""
    part = type(config)
    changes = {key: value for key, value in values.items() if key in part.model_fields}
    rest = {key: value for key, value in values.items() if key not in changes}
    for key in part.model_fields:
        if rest and _is_section(part, key):
            inner = getattr(config, key)
            new = _changed(inner, rest)
            if new != inner:
                changes[key] = new
    return config.replace(**changes)


def _preset_names(part: type[Config]) -> list[str]:
    """Names of the presets of a configuration, or of the one in it that has some."""
    return next(found for _, one in _sections(part) if (found := preset_names(one)))


def _preset(part: type[Config], name: str) -> Config:
    """The preset `name` of `part`, or `part` with that of the configuration in it that has presets."""
    path, owner = next((path, one) for path, one in _sections(part) if preset_names(one))
    found = preset(owner, name)
    return part(**{path[0]: found}) if path else found


def _value(text: str) -> Any:
    """The value in `text`: JSON, else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
