"""The pytest plugin in whose runs every simulator that is built counts coverage.

`LANIKAI_COVERAGE` names the folder for what simulators write. The simulators' build cache is one of its own beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lanikai.hdl.emit
import lanikai.sim.build.compiler as compiler
import lanikai.sim.build.model as model
import pytest
from amaranth.back import rtlil, verilog
from lanikai.sim.paths import cache_dir

from ..mutation import places
from .counted import keep_sources
from .marks import MARKS_FILE, Marks

__all__ = ["FLAGS"]


FLAGS = ("--coverage-line", "--coverage-toggle", "--coverage-max-width", "1024")
"""Verilator's flags, in every build."""

_marks = Marks()


def pytest_configure(config: pytest.Config) -> None:
    """Change how simulators are made, before any is."""
    places.install()
    _marks.install()
    known = model.versions
    # Part of the key of all that is built.
    model.versions = lambda: known() | {"coverage": " ".join(FLAGS)}
    # The simulators run for a short time: less is lost by slow code than won by a quick compiler.
    compiler.OPTIMIZE = ("-O0",)
    model._VARIANT_FLAGS = {name: (*flags, *FLAGS) for name, flags in model._VARIANT_FLAGS.items()}
    # Counters stand in the way of the forms that make blocks fast. They are the same design without these.
    model.branched = str
    model.order_state = lambda *_, **__: None
    rtlil._src = _source
    convert, make = verilog.convert, model.make_model

    def with_sources(*args: Any, **options: Any) -> str:
        return convert(*args, **options | {"emit_src": True, "strip_internal_attrs": False})

    def making(folder: Path, *args: Any, **options: Any) -> None:
        keep_sources(folder)
        # Which branches there are stands beside the simulators that have them.
        _marks.keep(cache_dir() / MARKS_FILE)
        make(folder, *args, **options)

    model.make_model = making
    lanikai.hdl.emit.verilog.convert = with_sources


def _source(place: Any) -> str:
    """A place as Verilog has it: a path from the root, so that builds in any folder are the same."""
    return f"{getattr(place, 'file', None) or 'elsewhere'}:{place[1] if place else 0}"
