"""The order of a block's variables in memory: those that one evaluation touches stand together."""

import pytest
from lanikai.sim.build.scopes import UnexpectedCode
from lanikai.sim.build.state_order import order_state

HEADER = """\
class alignas(VL_CACHE_LINE_BYTES) Vx___024root final {
  public:

    // DESIGN SPECIFIC STATE
    // Anonymous structures to workaround compiler member-count bugs
    struct {
        VL_IN8(clk,0,0);
        CData/*0:0*/ i__DOT__x__DOT__b__DOT__seldom;
        CData/*0:0*/ i__DOT__x__DOT__a__DOT__seldom;
        CData/*0:0*/ i__DOT__x__DOT__a__DOT__works;
        VL_OUTW(tx,129,0,5);
    };
    struct {
        VlWide<5>/*129:0*/ i__DOT__x__DOT__b__DOT__flit;
        VlWide<5>/*129:0*/ i__DOT__x__DOT__a__DOT__flit;
        VlUnpacked<VlWide<5>/*129:0*/, 256> i__DOT__x__DOT__a__DOT__items;
        VlUnpacked<CData/*3:0*/, 16> i__DOT__x__DOT__a__DOT__rows;
        VlUnpacked<QData/*63:0*/, 1> __VnbaTriggered;
    };

    // INTERNAL VARIABLES
    Vx__Syms* vlSymsp;
"""
CODE = """\
void Vx___024root___nba_sequent__TOP__0(Vx___024root* vlSelf) {
    auto& vlSelfRef = std::ref(*vlSelf).get();
    if (vlSelfRef.i__DOT__x__DOT__a__DOT__works) {
        vlSelfRef.i__DOT__x__DOT__a__DOT__seldom = 1;
        if (vlSelfRef.i__DOT__x__DOT__a__DOT__rows[0]) { vlSelfRef.i__DOT__x__DOT__a__DOT__items[1] = 0; }
    }
    vlSelfRef.i__DOT__x__DOT__b__DOT__flit[0] = 1;
}
"""
ORDER = [
    *("b__DOT__flit", "__VnbaTriggered", "clk", "tx", "a__DOT__works"),
    *("a__DOT__flit", "a__DOT__rows", "a__DOT__seldom", "b__DOT__seldom"),
    "a__DOT__items",
]


def test_what_an_evaluation_touches_stands_together(tmp_path):
    """First what every evaluation touches, then submodule by submodule, memories last; nothing is lost."""
    (tmp_path / "Vx___024root.h").write_text(HEADER)
    (tmp_path / "Vx___024root__0.cpp").write_text(CODE)
    # What is evaluated once, in the beginning, does not count.
    (tmp_path / "Vx___024root__0__Slow.cpp").write_text(CODE.replace("__DOT__works", "__DOT__seldom"))
    order_state(tmp_path, prefix="Vx")
    found = (tmp_path / "Vx___024root.h").read_text()
    lines = [line.strip() for line in found.splitlines()]
    places = [next(i for i, line in enumerate(lines) if name in line) for name in ORDER]
    assert places == sorted(places)
    assert sorted({*lines} - {"struct {", "};"}) == sorted(
        {line.strip() for line in HEADER.splitlines()}
        - {"struct {", "};", "// Anonymous structures to workaround compiler member-count bugs"}
    )
    assert lines.count("struct {") == lines.count("};") > 0


@pytest.mark.parametrize(
    ("text", "instead", "message"),
    [
        ("// INTERNAL VARIABLES", "// OTHER", r"Vx___024root\.h has no '// DESIGN SPECIFIC STATE' before"),
        ("VL_IN8(clk,0,0);", "void run();", r"no variable of a model: 'void run\(\);'"),
        ("VL_IN8(clk,0,0);", "CData clk", r"no variable of a model: 'CData clk'"),
    ],
)
def test_code_of_another_verilator_is_refused(tmp_path, text, instead, message):
    """A header that is not as expected is changed by nobody."""
    (tmp_path / "Vx___024root.h").write_text(HEADER.replace(text, instead))
    with pytest.raises(UnexpectedCode, match=message):
        order_state(tmp_path, prefix="Vx")
