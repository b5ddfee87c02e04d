"""A block written into a folder: Verilog a file a module, a list of the files, constraints, registers."""

from __future__ import annotations

import inspect
import shutil
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amaranth.lib import wiring
from lanikai.hdl.config import Config, NicConfig

from ..errors import FULL, UserError
from ..version import own_version
from .blocks import EXPORTS, NetworkSettings, network_of
from .constraints import sdc
from .ports import BlockPort, block_ports, port_table
from .registers import register_maps, require_peakrdl, write_registers
from .tidy import Module, tidy

__all__ = ["DEFAULT_CLOCK_HZ", "check_folder", "export", "top_name"]

DEFAULT_CLOCK_HZ = 100_000_000
"""Clock in the constraints of a block whose configuration names none."""
LETTERS = 120
"""Letters of a line of a comment."""


def top_name(what: str) -> str:
    """Name of the top module of the block `what`: `lanikai_rate_control` of `rate-control`."""
    return f"lanikai_{what}".replace("-", "_").replace("/", "_")


def check_folder(out: Path) -> None:
    """Raise UserError unless `out` is an empty folder, or a new one in a folder that is there."""
    if out.is_dir():
        if any(out.iterdir()):
            raise UserError(f"--out {str(out)!r}: the folder is not empty: name a new or an empty one")
    elif out.exists():
        raise UserError(f"--out {str(out)!r}: that is no folder: name a new or an empty one")
    elif not out.absolute().parent.is_dir():
        raise UserError(
            f"--out {str(out)!r}: there is no folder {str(out.absolute().parent)!r} to make it in"
        )


def export(
    what: str, config: Config, out: Path, *, settings: Sequence[str] = (), clock_hz: int | None = None
) -> list[str]:
    """Write the block `what` (a name in `EXPORTS`) with `config` into `out`. Returns the files' names.

    - `settings`: what the user has set, for the heads of the files.
    - `clock_hz`: the clock of the constraints. None: the configuration's own, or `DEFAULT_CLOCK_HZ`.

    The same arguments give the same bytes. The folder appears when all of it is there, and not if anything fails.
    Raises UserError and MissingTool before anything is made, and LanikaiError.
    """
    check_folder(out)
    top = top_name(what)
    maps = register_maps(what, config, top)
    if maps:
        require_peakrdl()
    if clock_hz is None:
        clock_hz = config.clock_hz if isinstance(config, NicConfig) else DEFAULT_CLOCK_HZ
    component = EXPORTS[what].make(config)
    ports = block_ports(component)
    modules = _modules(what, config, component, top, ports)
    version = own_version()
    command = " ".join(["lanikai verilog", what, *(f"--set {setting}" for setting in settings)])
    made_by = f"Written by lanikai {version}: {command}"
    out = out.absolute()
    partial: Path | None = None
    try:
        # What is not whole yet stands beside a new folder, or in one that is there: nothing else need be writable.
        partial = Path(tempfile.mkdtemp(prefix=".lanikai-", dir=out if out.is_dir() else out.parent))
        for module in modules:
            head = (
                _head(module.name, made_by, component, config, ports)
                if module.name == top
                else [f"Part of {top}.", made_by]
            )
            (partial / f"{module.name}.v").write_text(_commented(head) + "\n" + module.text)
        (partial / f"{top}.f").write_text("".join(f"{module.name}.v\n" for module in modules))
        (partial / f"{top}.sdc").write_text(f"# {made_by}\n" + sdc(ports, clock_hz=clock_hz, top=top))
        write_registers(partial, maps, version=version)
        files = sorted(path.name for path in partial.iterdir())
        if partial.parent == out:
            for name in files:
                (partial / name).rename(out / name)
            partial.rmdir()
        else:
            partial.chmod(0o755)
            partial.rename(out)
        return files
    except BaseException as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and error.errno not in FULL:
            raise UserError(f"--out {str(out)!r}: cannot be written: {error.strerror}") from None
        raise


def _modules(what: str, config: Config, component: Any, top: str, ports: Sequence[BlockPort]) -> list[Module]:
    """Every module of the block, those that others are made of first."""
    from lanikai.hdl.emit import to_verilog

    outside: dict[str, str] = {}
    found: list[Module] = []
    if isinstance(config, NetworkSettings):
        for name, router in network_of(config).block_components().items():
            outside[name] = f"{top}_{name}"
            order = [port.name for port in block_ports(router)]
            found += reversed(tidy(to_verilog(router, name=outside[name]), ports=order))
    order = [port.name for port in ports]
    return [*found, *reversed(tidy(to_verilog(component, name=top), ports=order, outside=outside))]


def _head(top: str, made_by: str, component: Any, config: Config, ports: Sequence[BlockPort]) -> list[str]:
    """The comment above the top module: what it is, its configuration, its ports."""
    doc = inspect.cleandoc(type(component).__doc__ or "").splitlines()
    return [
        f"{top}: {doc[0] if doc else ''}".rstrip(),
        made_by,
        "",
        "Configuration:",
        *(f"  {key} = {value}" for key, value in _flat(config.model_dump(mode="json"))),
        "",
        "Ports, their bits, and the fields of those that are structures. One clock, `clk`; reset `rst` is synchronous,",
        "active high. A member of the text below is a port; one of an interface has its name in front (`rx__valid`).",
        "",
        *(f"  {line}" for line in port_table(ports)),
        "",
        *doc[1:],
        *_interfaces(component.signature),
    ]


def _interfaces(signature: Any) -> list[str]:
    """The texts of the interfaces in a signature, each once, in order."""
    kinds: dict[type, None] = {}

    def add(one: Any) -> None:
        if type(one) is not wiring.Signature:
            kinds[type(one)] = None
        for _, member in one.members.items():
            if member.is_signature:
                add(member.signature)

    for _, member in signature.members.items():
        if member.is_signature:
            add(member.signature)
    lines = []
    for kind in [type(signature), *kinds]:
        if kind is not wiring.Signature and kind.__module__.startswith("lanikai"):
            lines += ["", f"{kind.__name__}: {inspect.cleandoc(kind.__doc__ or '')}"]
    return [line for text in lines for line in (text.splitlines() or [""])]


def _flat(values: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        found += _flat(value, f"{path}{key}.") if isinstance(value, dict) else [(f"{path}{key}", value)]
    return found


def _commented(lines: Sequence[str]) -> str:
    text = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        parts = textwrap.wrap(line, LETTERS, subsequent_indent=f"{indent}  ", break_long_words=False) or [""]
        text += [f"// {part}".rstrip() for part in parts]
    return "\n".join(text) + "\n"
