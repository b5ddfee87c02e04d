"""The documentation site: built without a warning, whole, and of use without a network."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def hooks():
    """The module `docs/site_hooks.py`."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built in strict mode: a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return out


@pytest.mark.xdist_group("site")
def test_every_page_is_there(site, hooks):
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    assert pages <= made and {Path("index.md"), Path("api/config.md"), Path("changelog.md")} <= made
    for package in hooks.API:
        text = site / hooks.api_place(package).replace(".md", ".html")
        assert not hooks.found(package) or "doc-heading" in text.read_text()


@pytest.mark.xdist_group("site")
def test_lists_and_tables_are_such(site):
    """A line that begins like an item or a row is one: the generator reads lists more strictly than others do."""
    for path in site.rglob("*.html"):
        text = re.sub(r"<pre.*?</pre>", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\n(?:[-*] |1\. |\| )", text), path.name


@pytest.mark.xdist_group("site")
@pytest.mark.skipif(BROWSER is None, reason="no browser")
def test_search_works_from_a_disk(site):
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=20000",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*command, f"file://{site}/index.html?q=doorbell"], capture_output=True, text=True, timeout=120
    )
    assert re.search(r"\d+ matching documents", done.stdout)
    assert re.search(r'href="[^"]*/nic\.html\?h=doorbell', done.stdout)


def test_the_order_is_that_of_the_readme(hooks):
    groups = hooks.groups()
    listed = [name for group in groups for names in group.values() for name in names]
    assert {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} == set(
        listed
    )
    assert len(listed) == len(set(listed)) and len(groups) > 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://unpkg.com/x.js"></script>', {"https://unpkg.com/x.js"}),
        ("<link rel=stylesheet href=//fonts.example/css>", {"//fonts.example/css"}),
        ('<img alt="a" src="a.png"><a href="https://amaranth-lang.org/">Amaranth</a>', set()),
    ],
)
def test_what_is_loaded_from_other_hosts_is_found(hooks, text, found):
    assert hooks.loaded(text) == found


def test_lists_are_indented_as_the_generator_reads_them(hooks):
    text = "1. One\n   - a\n\n   More.\n2. Two\n```\n  code\n```\n- x\n  y\n"
    assert hooks.indented(text) == ("1. One\n    - a\n\n    More.\n\n2. Two\n```\n  code\n```\n- x\n    y\n")


@pytest.mark.parametrize(
    ("link", "here", "place"),
    [
        ("[a](docs/gm.md#ends)", "index.md", "[a](gm.md#ends)"),
        ("[a](gm.md)", "via.md", "[a](gm.md)"),
        ("[a](../arbiters.md)", "guides/arbiter.md", "[a](../arbiters.md)"),
        ("[a](../../README.md)", "guides/arbiter.md", "[a](../index.md)"),
        ("[a](LICENSE)", "index.md", "[a](files/LICENSE.md)"),
        ("[a](https://amaranth-lang.org/)", "via.md", "[a](https://amaranth-lang.org/)"),
    ],
)
def test_links_lead_to_places_of_the_site(hooks, link, here, place):
    assert hooks.LINK.sub(lambda match: hooks.led(match, here), link) == place
