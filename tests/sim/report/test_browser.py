"""Reports in a real browser: charts drawn, tables that sort, names for who cannot see, and no request at all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from lanikai.sim.report.report import make_report
from support.sim.report_folders import load_run, run_facts, shares, sweep_rows, write_run, write_sweep

pytestmark = pytest.mark.xdist_group("browser")

KINDS = ("run", "shares", "sweep", "everything")
HOSTILE = (
    "<b>b</b><a href='//x.invalid'>a</a></script><script>alert(1)</script>"
    "<img src=https://example.invalid/x onerror=alert(2)>&lt;b&gt;\"'"
)

CONTRAST = """() => {
  const parse = (text) => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a ?? 1]; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => { c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = (element) => { for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor); if (colour[3] > 0.99) return colour; }
    return [255, 255, 255, 1]; };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || element.closest("script, style, noscript, .bartext") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = parse(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(text.slice(0, 40) + " " + ((a + 0.05) / (b + 0.05)).toFixed(2));
  }
  return [...new Set(found)];
}"""
"""Texts whose contrast with what is behind them is below 4.5 (WCAG 2 AA). Texts in bars are left out."""
NAMELESS = """() => [...document.querySelectorAll(
    "button, select, input, a, img, figure, [role=region], [role=img], nav")]
  .filter((e) => e.getClientRects().length && !e.closest("[aria-hidden=true]"))
  .filter((e) => !(e.getAttribute("aria-label") || e.alt || e.textContent.trim() || (e.labels && e.labels.length)
    || (e.getAttribute("aria-labelledby") && document.getElementById(e.getAttribute("aria-labelledby")).textContent)))
  .map((e) => e.outerHTML.slice(0, 80))"""
"""Elements that a reader can use or hears of, and that have no name."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """A report of each kind."""
    root = tmp_path_factory.mktemp("reports")
    bad = run_facts("congestion", [], claims=[{"text": "it does not hold", "holds": False}])
    folders = {
        "run": [load_run(root / "all" / "load")],
        "shares": [write_run(root / "all" / "shares", shares(achieved=(30.0, 41.0)))],
        "sweep": [write_sweep(root / "all" / "sweep", sweep_rows(60, flows=2))],
        "everything": [root / "all"],
    }
    write_run(root / "all" / "bad", bad)
    files = {}
    for kind, paths in folders.items():
        files[kind] = root / f"{kind}.html"
        files[kind].write_text(make_report(paths))
    return files


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    [
        *((kind, 1280, "light") for kind in KINDS),
        *((kind, 375, "light") for kind in KINDS),
        ("run", 1280, "dark"),
        ("everything", 1280, "dark"),
    ],
)
def test_every_chart_is_drawn_and_nothing_is_wrong(browser, reports, kind, width, scheme):
    if (width, scheme) == (1280, "light"):
        shown = browser.shared(reports[kind])
    else:
        shown = browser.show(reports[kind], width=width, scheme=scheme, touch=width == 375)
    page = shown.page
    page.locator("details.fold").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    page.wait_for_function("() => !document.querySelector('.plot:not([data-drawn])')")
    plots = page.locator(".plot")
    assert plots.count() >= 1
    for number in range(plots.count()):
        drawn = plots.nth(number).locator(".trace, .point, .bars path")
        assert drawn.count() > 0, plots.nth(number).get_attribute("data-title")
    assert page.locator("#trouble").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRAST) == []
    assert shown.said == [] and shown.asked == []


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_a_name_and_headings_are_in_order(browser, reports, kind):
    page = browser.shared(reports[kind]).page
    assert page.evaluate(NAMELESS) == []
    levels = page.locator("h1, h2, h3, h4, h5").evaluate_all("all => all.map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    tables = page.locator("table")
    for number in range(tables.count()):
        table = tables.nth(number)
        assert table.locator("caption").text_content().strip()
        assert table.locator("thead th:not([scope=col])").count() == 0
        assert table.locator("tbody tr").count() == table.locator("tbody th[scope=row]").count()
    names = [page.locator(".plot .main-svg[role=img]").nth(n).get_attribute("aria-label") for n in range(2)]
    assert all(name.startswith("Chart: ") for name in names)
    ids = page.locator("[id]").evaluate_all("all => all.map((e) => e.id)")
    ours = [one for one in ids if not one.startswith(("clip", "topdefs", "legend", "g"))]
    assert len(ours) == len(set(ours))


def column(table, number: int) -> list[str]:
    return [text.strip() for text in table.locator(f"tbody tr > :nth-child({number})").all_text_contents()]


def test_a_table_sorts_by_click_and_by_key(browser, reports):
    page = browser.shared(reports["run"]).page
    table = page.locator("table", has_text="Percentiles of latencies")
    head = table.locator("thead th").nth(2)
    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    rising = [float(text) for text in column(table, 3)]
    assert head.get_attribute("aria-sort") == "ascending"
    assert rising == sorted(rising) and rising[0] < rising[-1]
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in column(table, 3)] == rising[::-1]
    other = table.locator("thead th").nth(0)
    other.locator("button").focus()
    page.keyboard.press("Space")
    assert (other.get_attribute("aria-sort"), head.get_attribute("aria-sort")) == ("ascending", "none")
    assert column(table, 1) == sorted(column(table, 1))


def test_numbers_are_sorted_as_numbers_and_empty_cells_come_last(browser, tmp_path):
    points = [
        {"parameters": {"place": place}, "results": {"value_us": value}, "seed": 1}
        for place, value in enumerate([10.0, None, 9.0, 100.0, -2.0, -30.0, 1e-5])
    ]
    file = tmp_path / "report.html"
    file.write_text(make_report([write_run(tmp_path / "run", run_facts("toy", points))]))
    page = browser.show(file).page
    table = page.locator("table", has_text="Results of each point")
    place = table.locator("thead th").all_text_contents().index("value (µs)") + 1
    table.locator("thead th").nth(place - 1).locator("button").click()
    assert column(table, place) == ["-30", "-2", "1e-05", "9", "10", "100", "-"]
    table.locator("thead th").nth(place - 1).locator("button").click()
    assert column(table, place) == ["100", "10", "9", "1e-05", "-2", "-30", "-"]


def test_a_plot_zooms_and_comes_back(browser, reports):
    page = browser.shared(reports["run"]).page
    plot = page.locator(".plot").first
    extent = "e => e._fullLayout.xaxis.range.slice()"
    before = plot.evaluate(extent)
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_timeout(400)
    near = plot.evaluate(extent)
    assert near[1] - near[0] < 0.5 * (before[1] - before[0])
    plot.locator("[data-title='Reset axes']").focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(400)
    assert plot.evaluate(extent) == pytest.approx(before)


def test_nothing_offers_to_send_a_chart_away(browser, reports):
    titles = (
        browser.shared(reports["run"])
        .page.locator(".modebar-btn")
        .evaluate_all("all => all.map((e) => e.dataset.title)")
    )
    assert "Zoom in" in titles and not [title for title in titles if "hare" in title or "loud" in title]


def test_the_switch_changes_page_and_charts_and_is_remembered(browser, reports):
    page = browser.show(reports["run"], scheme="light").page
    back = "getComputedStyle(document.body).backgroundColor"
    line = "() => getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    light, light_text = page.evaluate(f"() => {back}"), page.evaluate(line)
    button = page.get_by_role("button", name="Dark colours")
    button.click()
    page.wait_for_function(f"light => {back} !== light", arg=light)
    page.wait_for_function(
        "light => getComputedStyle(document.querySelector('.plot .xtick text')).fill !== light",
        arg=light_text,
    )
    assert page.get_by_role("button", name="Light colours").is_visible()
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate(f"() => {back}") != light


def test_the_reader_chooses_what_is_drawn(browser, reports):
    page = browser.shared(reports["run"]).page
    figure = page.locator("figure.explorer")
    plot = figure.locator(".plot")
    labels = "e => [e._fullLayout.yaxis.title.text, e.data.length, e.data.map((one) => one.name)]"
    assert plot.evaluate(labels) == ["accepted (flits a node and cycle)", 1, ["all"]]
    figure.get_by_label("Vertical").select_option("class_latency_mean_cycles")
    assert plot.evaluate(labels) == ["class latency mean (cycles)", 2, ["class 0", "class 1"]]
    drawn = plot.evaluate("e => [e.data[0].x, e.data[0].y, e.data[0].error_y.array]")
    assert drawn[0] == [0.2, 0.5, 0.8] and all(one > 0 for one in drawn[2])
    figure.get_by_label("Horizontal").select_option("class")
    assert plot.evaluate("e => e.data[0].x") == [0, 1]


def test_the_filter_leaves_the_rows_with_a_text(browser, reports):
    page = browser.shared(reports["everything"]).page
    box = page.get_by_label("Show only rows with this text: Every published table")
    box.fill("share-senders")
    table = page.locator("table", has_text="Every published table")
    assert table.locator("tbody tr:visible").count() == 1
    assert page.locator("[role=status]", has_text="1 of").is_visible()
    table.get_by_role("link", name="share-senders").click()
    assert page.locator("#table-share-senders").evaluate("e => e.open")


def test_hostile_values_are_text(browser, tmp_path):
    facts = run_facts(
        HOSTILE,
        [
            {"parameters": {"text": str(n) + HOSTILE, HOSTILE: n}, "results": {"x_us": float(n), HOSTILE: n}, "seed": 1,
             "published": {"x_us": 1.0}, "tolerance": {"x_us": 0.1}}
            for n in range(3)
        ],
        claims=[{"text": HOSTILE, "holds": True}],
        claims_not_judged=[{"text": HOSTILE, "why": HOSTILE}],
        command=HOSTILE,
        parameters={HOSTILE: HOSTILE},
        files={"csv": HOSTILE},
    )  # fmt: skip
    folder = write_run(tmp_path / "run", facts)
    file = tmp_path / "report.html"
    file.write_text(make_report([folder]))
    shown = browser.show(file)
    assert shown.said == [] and shown.asked == []
    assert shown.page.locator("h1").text_content() == HOSTILE
    assert shown.page.locator("script:not([type]), img").count() == 3  # page's, library's, the run's plot
    figure = shown.page.locator("figure.explorer")
    figure.get_by_label("A line for each").select_option("text")
    names = figure.locator(".legendtext").all_text_contents()
    assert len(names) == 3 and all("<b>b</b><a href=" in name and "<script>" in name for name in names)
    assert figure.locator("a[href], .legendtext a").count() == 0
    assert shown.said == [] and shown.asked == []
