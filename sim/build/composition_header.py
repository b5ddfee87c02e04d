"""The text of `composition.h`, which builds a composed system in memory: its instances, and what joins them."""

from __future__ import annotations

from collections.abc import Iterator

from amaranth import Shape

from .composition import LIBRARIES, Block, Composition, Library, port_name

__all__ = ["composition_header"]

_LINK = ("payload", "valid", "credit_vl", "credit_valid")
_KINDS = {"bit": "kBit", "or": "kOr", "sum": "kSum"}
"""The names of an output's kinds in `native/instance.h`."""


def composition_header(composition: Composition, variant: str) -> str:
    """The text of `composition.h` for a build of `variant`."""
    return "\n".join(_header(composition, variant)) + "\n"


def _header(composition: Composition, variant: str) -> Iterator[str]:
    kinds = list(composition.libraries(variant).values())
    yield "// The system's instances and links (sim/build/composition.py)."
    yield "#pragma once"
    yield "#include <array>"
    for block, library in kinds:
        yield f'#include "{block.prefix(library)}.h"'
        yield f'#include "{block.prefix(library)}___024root.h"'
        if library == "fast":
            root = f"{block.prefix(library)}___024root"
            yield f"void {root}___eval({root}* root);"
    yield '#include "blocks.h"'
    if any(block.clock for block in composition.blocks):
        yield '#include "timekeeper.h"'
    yield '#include "scopes.h"'
    yield '#include "visible.h"'
    yield "// Whether Python sees every signal of an instance."
    yield f"#define LANIKAI_VISIBLE {int(variant == 'debug')}"
    first = composition.blocks[0]
    end = f"{first.prefix(LIBRARIES[variant][0])}::{port_name(first.transmit[0])}_payload"
    yield f"constexpr size_t kFlitBytes = sizeof({end});"
    yield "using System = blocks::System<kFlitBytes>;"
    inputs = {output.input: output for block in composition.blocks for output in block.outputs.values()}
    yield "struct Inputs {"
    yield from (f"  uint32_t {name};" for name in inputs)
    yield "};"
    yield from _tables(composition)
    for block, library in kinds:
        yield from _adder(block, library)
    yield "// `traced`: whether the instance of a path writes waves."
    yield "template <class Traced>"
    yield "void compose(Vtop* top, VerilatedContext* context, System& system, const Traced& traced) {"
    yield "  Inputs inputs;"
    for name, output in inputs.items():
        kind = f"blocks::Kind::{_KINDS[output.kind]}"
        yield f"  inputs.{name} = system.input(&top->{name}, sizeof(top->{name}), {kind});"
    yield "  for (const Row& row : kInstances) {"
    yield "    switch (2 * row.block + traced(row.path)) {"
    for number, block in enumerate(composition.blocks):
        for library in LIBRARIES[variant]:
            case = 2 * number + (library == "waves")
            yield f"      case {case}: add_{block.prefix(library)}(system, top, context, inputs, row); break;"
    yield "    }"
    yield "  }"
    if any(one.scopes for one in composition.instances):
        yield "  for (const Scope& scope : kScopes) system.name_scope(scope.instance, scope.path, scope.inner);"
    yield "  for (const auto& link : kLinks) system.link(link[0], link[1], link[2], link[3]);"
    addressed = "&top->addressed" if any(block.addressed for block in composition.blocks) else "nullptr"
    yield f"  system.start(&top->attention, &top->now, {addressed});"
    yield "}"


def _tables(composition: Composition) -> Iterator[str]:
    most = max((len(one.fixed) for one in composition.instances), default=0)
    yield "struct Row {"
    yield "  int block;"
    yield "  const char* path;"
    yield "  uint32_t number;"
    yield f"  std::array<uint64_t, {max(1, most)}> fixed;"
    yield "};"
    numbers = {block.name: number for number, block in enumerate(composition.blocks)}
    yield "inline const Row kInstances[] = {"
    for one in composition.instances:
        fixed = ", ".join(f"{value}u" for value in one.fixed)
        yield f'  {{{numbers[one.block]}, "{one.path}", {one.number}, {{{fixed}}}}},'
    yield "};"
    if any(one.scopes for one in composition.instances):
        yield "struct Scope {"
        yield "  uint32_t instance;"
        yield "  const char *path, *inner;"
        yield "};"
        yield "inline const Scope kScopes[] = {"
        yield from (
            f'  {{{number}, "{path}", "{inner}"}},'
            for number, one in enumerate(composition.instances)
            for path, inner in one.scopes
        )
        yield "};"
    yield "inline const uint32_t kLinks[][4] = {"
    for link in composition.links:
        yield f"  {{{link.source}, {link.transmit}, {link.target}, {link.receive}}},"
    yield "};"


def _adder(block: Block, library: Library) -> Iterator[str]:
    model = block.prefix(library)
    yield (
        f"inline void add_{model}(System& system, Vtop* top, VerilatedContext* context, "
        "const Inputs& inputs, const Row& row) {"
    )
    yield f"  auto* const m = new {model}(context, row.path);"
    yield "  m->clk = 0;"
    yield from (f"  m->{pin} = row.fixed[{i}];" for i, pin in enumerate(block.fixed))
    yield "  blocks::Instance instance{};"
    yield "  instance.path = row.path;"
    evaluation = f"{model}, blocks::evaluate<{model}>"
    if library == "fast":
        # Without what `eval` has around it, for messages and objects of classes: blocks have none.
        evaluation = f"{model}___024root, {model}___024root___eval"
    yield f"  instance.model = {'m->rootp' if library == 'fast' else 'm'};"
    yield f"  instance.step = blocks::step<{evaluation}>;"
    yield f"  instance.settle_inputs = blocks::settle_inputs<{evaluation}>;"
    yield "  instance.quiet = &m->quiet;"
    yield f"  instance.settle = {block.settle_cycles};"
    yield f"  instance.address = {'row.number' if block.addressed else '-1'};"
    if library == "waves":
        yield "  instance.clks = {&m->clk};"
        yield "  instance.trace = [m](VerilatedTraceBaseC* file) { m->trace(file, 99); };"
    yield "  instance.state = m->rootp;"
    yield "  instance.state_bytes = sizeof(*m->rootp);"
    for name, ends in (("transmit", block.transmit), ("receive", block.receive)):
        for end in ends:
            pins = ", ".join(f"&m->{port_name(end)}_{member}" for member in _LINK)
            yield f"  instance.{name}.push_back({{{pins}}});"
    for pin, output in block.outputs.items():
        yield (
            f"  instance.outputs.push_back({{blocks::Kind::{_KINDS[output.kind]}, &m->{pin}, "
            f"sizeof(m->{pin}), inputs.{output.input}, row.number}});"
        )
    for pin, name in block.broadcast.items():
        yield f"  instance.broadcasts.push_back({{&top->{name}, &m->{pin}, sizeof(m->{pin})}});"
    if block.due:
        yield "  instance.waiting = &m->waiting;"
        yield from (f"  instance.due.push_back(&m->due_{i});" for i in range(block.due))
    bits = _port_bits(block)
    yield from (
        f'  instance.ports.push_back({{"{pin}", &m->{pin}, {bits[pin]}, sizeof(m->{pin})}});'
        for pin in (*block.python, *(block.wave_python if library == "waves" else ()))
    )
    if clock := block.clock:
        rates = (
            f"{{{clock.num}u, {clock.den}u, {clock.bits}, {clock.reach_ticks}u, {clock.round_cycles}u, "
            f"{clock.horizon_cycles}u}}"
        )
        keeper = f"blocks::Clocked<{model}>"
        yield f"  instance.keeper = std::make_shared<{keeper}>(m, blocks::ClockRates{rates});"
    yield "  m->eval();"
    yield "  blocks::release_zero_pages(instance.state, instance.state_bytes);"
    yield "  blocks::show_scope(context, row.path);"
    if library == "debug":
        yield "  instance.clks = blocks::clocks(context, row.path);"
    yield "  system.add(std::move(instance));"
    yield "}"


def _port_bits(block: Block) -> dict[str, int]:
    """The widths of a block's ports by their names."""
    return {
        port_name("__".join(str(step) for step in path)): Shape.cast(member.shape).width
        for path, member, _value in block.component.signature.flatten(block.component)
    }
