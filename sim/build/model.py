"""Building: a design (Verilog texts) to a simulator executable, cached by what went in.

`Design` is the text. `Recipe` is a design that has yet to be made from a configuration, so that a second run of the
same configuration needs no Amaranth at all. `build` takes either and returns a `Model`, which `run` starts.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import lanikai.hdl.emit
from amaranth.lib import wiring
from lanikai.hdl.emit import to_verilog

from ..errors import LanikaiError
from ..extensions import adds_hardware, outside_roots
from .branches import branched
from .cache import Cache, content_key
from .compact_memories import compact_memories
from .compiler import BuildError, make_library, make_model, require_trace_header, versions
from .composition import Block, Composition, Library
from .composition_header import composition_header
from .packet_view import WAVES_MACRO
from .scopes import UnexpectedCode, rename_scopes
from .state_order import order_state

__all__ = [
    "WRITERS",
    "Design",
    "Model",
    "Progress",
    "Public",
    "Recipe",
    "Variant",
    "block_design",
    "build",
    "sources_hash",
]

Variant = Literal["fast", "debug", "waves"]
"""`fast`: only the signals that the design lists can be seen. `debug`: every signal (5 times slower).
`waves`: as `fast`, and every signal goes to an FST file (10 times slower)."""

Progress = Callable[[float, str], None]

ENUMS_FILE = "enums.json"
"""File of a model that holds the design's `enums`."""
COMPOSED_FILE = "composition.h"
"""File of a model that is there if it is composed."""
_SIM = Path(__file__).parents[1]
_NATIVE = _SIM / "native"
_BLOCKS = (
    *("bells.h", "blocks.h", "crew.h", "cut.h", "instance.h", "layout.h", "own.h", "pages.h", "part.h"),
    *("scopes.h", "timekeeper.h", "visible.h"),
)
"""Headers of the native part that a composition needs."""
_SOURCES = frozenset({".py", ".rdl", ".toml", ".cpp", ".h"})
WRITERS: tuple[Path, ...] = (
    Path(lanikai.hdl.emit.__file__).parent,
    _SIM / "build",
    _SIM / "inside",
    _SIM / "models",
    _SIM / "systems",
    _SIM / "waves",
)
"""Folders whose sources write designs."""
_VARIANT_FLAGS: Mapping[str, tuple[str, ...]] = {
    "fast": (),
    "debug": ("--public-flat-rw",),
    "waves": ("--trace-fst", "--trace-structs", f"-D{WAVES_MACRO}"),
}


@dataclass(frozen=True)
class Public:
    """A signal that Python touches: variable `var` of module `module`. It is `writable` or only read."""

    module: str
    var: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Design:
    """A design to simulate.

    - `top`: the top module's name; it has an input `clk`, which the simulator's main loop drives.
    - `sources`: texts by file name: Verilog (`.v`, `.sv`) and C++ (`.cpp`, for DPI).
    - `public`: the signals that Python touches. They are few, as each costs speed. They are read and written by the
      names in the top module, so they should be ports of the top module.
    - `no_inline`: modules that are instantiated many times and are to be compiled once.
    - `enums`: names of the values of variables, by the end of their paths, for waves.
    - `composition`: instances that are not in `sources` (`composition.py`).
    """

    top: str
    sources: Mapping[str, str]
    public: tuple[Public, ...] = ()
    no_inline: tuple[str, ...] = ()
    enums: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    composition: Composition | None = None

    def control_file(self, variant: Variant) -> str:
        """The Verilator configuration (`.vlt`) that makes signals visible and keeps modules apart."""
        lines = ["`verilator_config"]
        if variant != "debug":
            for signal in self.public:
                access = "public_flat_rw" if signal.writable else "public_flat_rd"
                lines.append(f'{access} -module "{signal.module}" -var "{signal.var}"')
        lines += [f'no_inline -module "{module}"' for module in self.no_inline]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A design that has yet to be made: `name` and `config` (JSON text) say which, `make` makes it.

    The design follows from more: sources, and the versions of the tools. The sources are those of the packages that
    write designs (`WRITERS`), of the extensions of other distributions, and of the simulation's native part.

    `make` is called only when any of it is new. A file that moves or changes its name within these packages is a change
    like any other, so no list of files can fall behind.
    """

    name: str
    config: str
    make: Callable[[], Design]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A built simulator.

    - `top`: the top module's name.
    - `variant`: the variant that was built.
    - `executable`: its file.
    - `cached`: it was there already.
    - `seconds`: the time that `build` took.
    - `key`: the name of its content.
    """

    top: str
    variant: Variant
    executable: Path
    cached: bool
    seconds: float
    key: str = field(repr=False)

    @property
    def composed(self) -> bool:
        """Whether it is made of instances that can be evaluated on several threads (`composition.py`)."""
        return (self.executable.parent / COMPOSED_FILE).exists()

    def enums(self) -> dict[str, dict[int, str]]:
        """The design's `enums`."""
        found = json.loads((self.executable.parent / ENUMS_FILE).read_text())
        return {end: {int(value): name for value, name in names.items()} for end, names in found.items()}


def block_design(component: wiring.Component, *, name: str = "block") -> Design:
    """One Amaranth component as a design of its own, all ports of its signature public (`dut.tx__valid`).

    `clk` runs by itself; `rst` is an input at 0.
    """
    text = to_verilog(component, name=name)
    public = [Public(name, "clk"), Public(name, "rst", writable=True)]
    for path, member, _value in component.signature.flatten(component):
        public.append(Public(name, "__".join(str(step) for step in path), writable=member.flow == wiring.In))
    return Design(top=name, sources={f"{name}.v": text}, public=tuple(public))


def build(
    design: Design | Recipe,
    variant: Variant = "fast",
    progress: Progress | None = None,
    *,
    cache: Cache | None = None,
) -> Model:
    """The simulator of `design`, from the cache if it was built before.

    `progress` gets a fraction (0 to 1) and a text of one line. Raises MissingTool, BuildError (with the log's
    last lines), ValueError for an unknown variant. Interrupted, it leaves no process and no half-made entry.
    """
    if variant not in get_args(Variant):
        raise ValueError(f"variant = {variant!r}: one of {', '.join(get_args(Variant))}")
    started = time.monotonic()
    store = cache or Cache()
    tell = progress or (lambda fraction, text: None)
    tools = versions()
    if isinstance(design, Recipe):
        parts = {
            "recipe": design.name,
            "config": design.config,
            "variant": variant,
            "tools": tools,
            "writers": _writers_hash(),
            "native": _native_hash(),
        }
        # Code of a script is in no file that a key could be made of: its designs are made anew, and found by content.
        remembered = not adds_hardware()
        known = store.find("recipes", content_key(parts)) if remembered else None
        if known:
            link = json.loads((known / "model.json").read_text())
            found = store.find("models", link["key"])
            if found:
                return _model(found, link["top"], variant, link["key"], cached=True, started=started)
            shutil.rmtree(known, ignore_errors=True)
        tell(0.0, f"{design.name}: Amaranth to Verilog")
        made = design.make()
        model = _build_design(made, variant, tell, store, tools, started)
        text = json.dumps({"key": model.key, "top": model.top})
        if remembered:
            store.make("recipes", content_key(parts), lambda folder: _write(folder / "model.json", text))
        return model
    return _build_design(design, variant, tell, store, tools, started)


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _model(folder: Path, top: str, variant: Variant, key: str, *, cached: bool, started: float) -> Model:
    return Model(
        top=top,
        variant=variant,
        executable=folder / "sim",
        cached=cached,
        seconds=time.monotonic() - started,
        key=key,
    )


def _build_design(
    design: Design, variant: Variant, tell: Progress, store: Cache, tools: Mapping[str, str], started: float
) -> Model:
    composition = design.composition
    headers = [
        *("agenda.h", "lists.h", "options.h", "player.h", "skip.h", "turns.h", "wakes.h"),
        *(_BLOCKS if composition else ()),
        *(["trace.h"] if variant == "waves" else []),
    ]
    native = {name: (_NATIVE / name).read_text() for name in ("main.cpp", *headers)}
    if composition:
        native[COMPOSED_FILE] = composition_header(composition, variant)
    libraries = composition.libraries(variant) if composition else {}
    blocks = {name: _block_text(block, library) for name, (block, library) in libraries.items()}
    sources = {
        name: compact_memories(text) if name.endswith(".v") else text for name, text in design.sources.items()
    }
    sources |= native | {"control.vlt": design.control_file(variant)}
    flags = _VARIANT_FLAGS[variant]
    # JSON has no numbers for keys.
    enums = {end: {str(value): name for value, name in names.items()} for end, names in design.enums.items()}
    content = {"top": design.top, "sources": sources, "flags": flags, "tools": tools, "enums": enums}
    if blocks:
        content |= {"blocks": blocks, "changes": _changes_hash()}
    key = content_key(content)
    if variant == "waves" and not store.find("models", key):
        require_trace_header()

    def fill(folder: Path) -> None:
        for name, text in sources.items():
            (folder / name).write_text(text)
        (folder / ENUMS_FILE).write_text(json.dumps(enums))
        # The control file comes first, so that it holds for all that follows.
        given = [name for name in sources if not name.endswith(".h")]
        order = sorted(given, key=lambda name: (not name.endswith(".vlt"), name.endswith(".cpp"), name))
        for name, (block, library) in libraries.items():
            made = _build_block(block, library, blocks[name], tell, store, tools)
            shutil.copytree(made, folder / "blocks" / name)
        runtime = store.find("runtimes", runtime_key)
        tell(0.3, f"{design.top}: compiling")
        log = folder / "build.log"
        try:
            make_model(
                folder, design.top, order, flags=flags, log=log, runtime=runtime, libraries=list(libraries)
            )
        except BuildError as error:
            raise _kept(error, store, key) from None
        if runtime is None:
            store.make("runtimes", runtime_key, lambda target: _keep_runtime(folder / "build", target))
        shutil.rmtree(folder / "build")
        shutil.rmtree(folder / "blocks", ignore_errors=True)

    runtime_key = content_key({"traced": variant == "waves", "tools": tools})
    tell(0.1, f"{design.top}: Verilog to C++")

    def waiting() -> None:
        tell(0.1, f"{design.top}: waiting for another run that builds the same design")

    folder, cached = store.make("models", key, fill, waiting)
    tell(1.0, f"{design.top}: built")
    return _model(folder, design.top, variant, key, cached=cached, started=started)


def _block_text(block: Block, library: Library) -> dict[str, str]:
    """The texts that a block's library is made of, by file name."""
    # Branches leave signals of modules that have nothing to do as they were: nobody is to look at them.
    form = branched if library == "fast" else str
    texts = {
        name: compact_memories(form(text)) if name.endswith(".v") else text
        for name, text in block.sources(library).items()
    }
    scopes = (_NATIVE / "scopes.h").read_text()
    return {"control.vlt": block.control_file(library)} | texts | {"scopes.h": scopes}


def _build_block(
    block: Block,
    library: Library,
    texts: Mapping[str, str],
    tell: Progress,
    store: Cache,
    tools: Mapping[str, str],
) -> Path:
    """The folder with a block's headers and library, shared by all systems that hold the block."""
    flags, prefix = _VARIANT_FLAGS[library], block.prefix(library)
    content = {
        "block": block.name,
        "sources": texts,
        "flags": flags,
        "tools": tools,
        "changes": _changes_hash(),
    }
    key = content_key(content)

    def change(build: Path) -> None:
        rename_scopes(build, prefix=prefix, module=block.module, block=block.inner)
        if library == "fast":
            order_state(build, prefix=prefix)

    def fill(folder: Path) -> None:
        tell(0.2, f"{block.name}: compiling")
        for name, text in texts.items():
            (folder / name).write_text(text)
        log = folder / "build.log"
        try:
            given = [name for name in texts if not name.endswith(".h")]
            make_library(folder, block.module, prefix, given, flags=flags, change=change, log=log)
        except BuildError as error:
            raise _kept(error, store, key) from None
        except UnexpectedCode as error:
            raise LanikaiError(
                f"{block.name}: this Verilator writes other C++ than is known: {error}"
            ) from None

    def waiting() -> None:
        tell(0.2, f"{block.name}: waiting for another run that builds the same block")

    return store.make("blocks", key, fill, waiting)[0]


def _keep_runtime(build_folder: Path, target: Path) -> None:
    for item in build_folder.glob("verilated*.o"):
        shutil.copyfile(item, target / item.name)


def _kept(error: BuildError, store: Cache, key: str) -> BuildError:
    """The error with its log moved to where it stays when the half-made entry is removed."""
    folder = store.root / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{key}.log"
    shutil.copyfile(error.log, kept)
    return BuildError(error.what, kept)


@cache
def _writers_hash() -> str:
    return sources_hash(*WRITERS, *outside_roots())


@cache
def _native_hash() -> str:
    return sources_hash(_NATIVE)


@cache
def _changes_hash() -> str:
    """Hash of the files that change the C++ of blocks."""
    return sources_hash(*(_SIM / "build" / name for name in ("scopes.py", "state_order.py")))


def sources_hash(*roots: Path) -> str:
    """Hash of the sources of `roots`, each a file or a folder with all that is below it: their paths and contents.

    Raises ValueError for a root that is not there or holds no source. A key that leaves a root out would give a
    simulator of yesterday without a word.
    """
    digest = hashlib.sha256()
    for root in roots:
        files = (
            [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.suffix in _SOURCES)
        )
        if not files:
            raise ValueError(f"{str(root)!r} goes into a build's key, but no source file is there")
        for path in files:
            digest.update(f"{root.name}/{path.relative_to(root).as_posix()}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
