"""The registers of a block for its users: SystemRDL from the one declaration, and from it C and IP-XACT by PeakRDL."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lanikai.hdl.config import Config, NicConfig, RouterConfig
from lanikai.hdl.registers import Field, Register

from ..errors import LanikaiError, MissingTool
from ..extras import install_command
from .blocks import NetworkSettings, network_of

__all__ = ["RegisterMap", "register_maps", "require_peakrdl", "write_registers"]

_FORMATS = {"c-header": "h", "ip-xact": "xml"}
"""PeakRDL's name of each format that it makes -> ending of its file."""


@dataclass(frozen=True, kw_only=True)
class RegisterMap:
    """Registers that one port of a block leads to.

    - `name`: of the address map and its files.
    - `about`: the map in a line.
    - `base`: byte address of the first register on that port.
    - `registers`: by name; their offsets count from `base`.
    """

    name: str
    about: str
    base: int
    registers: Mapping[str, Register]

    @property
    def systemrdl(self) -> str:
        """The map as a SystemRDL 2.0 file."""
        return "\n".join(
            [
                f"// {self.about}",
                f"addrmap {self.name} {{",
                f"    name = {_text(self.about)};",
                "    default regwidth = 32;",
                "    regfile {",
                *(f"        {line}" for register in self.registers.values() for line in _register(register)),
                f"    }} registers @ {self.base:#x};",
                "};",
                "",
            ]
        )


def register_maps(what: str, config: Config, top: str) -> list[RegisterMap]:
    """The maps of the block `what` with this configuration, as its ports lead to them; none without registers.

    `top`: name of its top module, before that of each map.
    """
    if isinstance(config, NetworkSettings):
        config = network_of(config).router
    if isinstance(config, RouterConfig):
        return _router_maps(config, top)
    if isinstance(config, NicConfig) and what == "nic":
        return _card_maps(config, top)
    return []


def _card_maps(config: NicConfig, top: str) -> list[RegisterMap]:
    from lanikai.hdl.nic.blocks import host_registers, nic_registers
    from lanikai.hdl.nic.ports import REGISTER_BASE

    return [
        RegisterMap(
            name=f"{top}_processor",
            about="Registers of the card, as its processor sees them (port `processor`).",
            base=REGISTER_BASE,
            registers=nic_registers(config),
        ),
        RegisterMap(
            name=f"{top}_host",
            about="Registers of the card, as the host sees them (port `host`, AXI4-Lite).",
            base=REGISTER_BASE,
            registers=host_registers(config),
        ),
    ]


def _router_maps(config: RouterConfig, top: str) -> list[RegisterMap]:
    from lanikai.hdl.router.agent import agent_registers

    registers = agent_registers(config)
    if not registers:
        return []
    about = "Registers of a router, as its agent sees them (port `agent`)."
    return [RegisterMap(name=f"{top}_agent", about=about, base=0, registers=registers)]


def _text(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _register(register: Register) -> Iterator[str]:
    yield "reg {"
    if register.doc:
        yield f"    desc = {_text(register.doc)};"
    for field in register.fields.values():
        high = field.low + field.width - 1
        words = "".join(f" {name} = {value};" for name, value in _properties(field).items())
        once = " woclr;" if field.write_one_clears else ""
        doc = f" desc = {_text(field.doc)};" if field.doc else ""
        yield f"    field {{{words}{once}{doc} }} {field.name}[{high}:{field.low}];"
    yield f"}} {register.name} @ {register.offset:#05x};"


def _properties(field: Field) -> dict[str, str]:
    software = ("r" if field.sw_readable else "") + ("w" if field.sw_writable else "")
    hardware = "rw" if field.hw_writable and field.sw_writable else "w" if field.hw_writable else "r"
    return {"sw": software, "hw": hardware}


def require_peakrdl() -> None:
    """Raise MissingTool unless PeakRDL and its two formats are there."""
    for module, name in (
        ("peakrdl", "peakrdl-cli"),
        ("peakrdl_cheader", "peakrdl-cheader"),
        ("peakrdl_ipxact", "peakrdl-ipxact"),
    ):
        if importlib.util.find_spec(module) is None:
            raise MissingTool(name, install_command("export"))


def write_registers(folder: Path, maps: Sequence[RegisterMap], *, version: str) -> list[str]:
    """Write each map into `folder` as SystemRDL, C header and IP-XACT (`version`). Returns the files' names.

    Raises MissingTool, LanikaiError with PeakRDL's own words.
    """
    files = []
    for one in maps:
        (folder / f"{one.name}.rdl").write_text(one.systemrdl)
        files.append(f"{one.name}.rdl")
        for kind, ending in _FORMATS.items():
            # A program of its own, as Yosys is: its licence is not this one's.
            command = [sys.executable, "-m", "peakrdl", kind, f"{one.name}.rdl", "-o", f"{one.name}.{ending}"]
            if kind == "ip-xact":
                command += ["--vendor", "lanikai", "--library", "lanikai", "--version", version]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                said = textwrap.shorten(done.stdout + done.stderr, 400)
                raise LanikaiError(f"peakrdl {kind} failed with status {done.returncode}: {said}")
            files.append(f"{one.name}.{ending}")
    return files
