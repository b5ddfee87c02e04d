"""Reports in a real browser: one Chromium for all tests of this folder, and folders that no simulation has made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "no browser: sudo apt-get install chromium"
PATIENCE_MS = 60_000


@dataclass
class Shown:
    """A report in the browser: its `page`, what its console said, and what it asked for beside itself."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


class Browser:
    """Opens reports."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._open: dict[Path, Shown] = {}

    def shared(self, file: Path) -> Shown:
        """The report `file` on a desktop, opened once: for tests that leave it as it is, or do not care."""
        if file not in self._open:
            self._open[file] = self.show(file)
        return self._open[file]

    def show(self, file: Path, *, width: int = 1280, scheme: str = "light", touch: bool = False) -> Shown:
        """The report `file`, when its charts are drawn."""
        context = self._chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=touch, is_mobile=touch
        )
        page = context.new_page()
        shown = Shown(page)
        page.on("console", lambda message: shown.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: shown.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: shown.said.append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.on("popup", lambda popup: shown.asked.append(f"popup: {popup.url}"))
        address = file.resolve().as_uri()

        def note(request: Any) -> None:
            if request.url != address and not request.url.startswith(("data:", "blob:")):
                shown.asked.append(request.url)

        page.on("request", note)
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached", timeout=PATIENCE_MS)
        return shown


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser; tests that want it are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    sync_api = pytest.importorskip("playwright.sync_api")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=PATIENCE_MS)
        yield Browser(chromium)
        chromium.close()
