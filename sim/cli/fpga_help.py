"""The help of `lanikai fpga`'s commands: with the settings of designs, and the parameters of their experiments."""

from __future__ import annotations

from typing import Any

from .run_help import WordsCommand, words, write_settings

__all__ = ["DesignCommand", "ReadCommand"]


class DesignCommand(WordsCommand):
    """A command whose help ends with the settings of the design that is named beside `--help`, or of all."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the settings below the options."""
        from ..fpga.designs import DESIGNS
        from ..fpga.settings import design_settings

        super().format_epilog(ctx, formatter)
        named = [word for word in words(ctx) if word in DESIGNS]
        for design in named or DESIGNS:
            with formatter.section(design):
                formatter.write_text(DESIGNS[design].about)
            _write(formatter, f"Settings of {design} (--set KEY=VALUE)", design_settings(design))


class ReadCommand(WordsCommand):
    """A command whose help ends with the parameters of each design's experiment that a host may set."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters below the options."""
        from ..fpga.designs import DESIGNS
        from ..fpga.settings import experiment_name, host_settings

        super().format_epilog(ctx, formatter)
        for design in DESIGNS:
            heading = f"Parameters of {experiment_name(design)}, on {design} (--set KEY=VALUE)"
            _write(formatter, heading, host_settings(design))


def _write(formatter: Any, heading: str, settings: Any) -> None:
    rows = [(one.name, one.what, one.values, f"default: {one.default}") for one in settings]
    write_settings(formatter, heading, rows)
