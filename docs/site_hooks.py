"""The documentation site's own part: which pages it has, in which order, and Markdown as the generator reads it.

- The order is that of the README's list of pages: a tab for each of its groups. A page that it does not name is a
  warning, and warnings end the build.
- README, CHANGELOG and CONTRIBUTING are pages, too. A file of the tree that a page links to becomes a page with its
  text.
- Pages of the API come from docstrings.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
TOP = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the tree's root, and their places in the site."""
PLACES = {place: name for name, place in TOP.items()}
API = {
    "lanikai": "The Python API",
    "lanikai.hdl.config": "Configurations",
    "lanikai.sim.host.gm": "GM",
    "lanikai.sim.host.mpi": "MPI",
    "lanikai.sim.host.am": "Active Messages",
    "lanikai.sim.host.via": "VIA",
    "lanikai.sim.host.hca": "Host channel adapter",
    "lanikai.sim.host.kit": "Host kit",
    "lanikai.sim.host.cpu": "Host processors",
}
"""Packages that a user reads: a page of the API each, and its title."""
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".rdl": "systemverilog", ".yml": "yaml"}
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
LOADS = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)"
)
FENCE = re.compile(r"^ *```")
NUMBER = re.compile(r"^\d+\. ")
LONGEST_DEFAULT = 60
"""Characters of a default that a table shows."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not below `docs/`."""
    for name, place in TOP.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    for package, title in API.items():
        if (text := api_page(package, title)) is not None:
            files.append(File.generated(config, api_place(package), content=text))
    for name in sorted(outside(files)):
        files.append(File.generated(config, file_place(name), content=file_page(name)))
    return files


def on_config(config: Any) -> Any:
    """Take the order of the pages from the README."""
    config.nav = [{"Start": "index.md"}, *groups(), {"API": [api_place(name) for name in API if found(name)]}]
    config.nav.append({"Project": [place for place in TOP.values() if place != "index.md"]})
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to the places of the site, and indent lists as the generator wants it."""
    here = page.file.src_uri
    if here.startswith(("api/", "files/")):
        return markdown
    return indented(LINK.sub(lambda match: led(match, here), markdown))


def groups() -> list[dict[str, list[str]]]:
    """The groups of the README's list of pages: of each the heading, and its pages below `docs/`."""
    part = (ROOT / "README.md").read_text().partition("\n## All pages\n")[2].partition("\n## ")[0]
    made: list[dict[str, list[str]]] = []
    for line in part.splitlines():
        if heading := re.fullmatch(r"(\w[\w ]*)(?:, [\w ,]*)?:", line):
            made.append({heading[1]: []})
        elif made and line.startswith("- "):
            title = next(iter(made[-1]))
            for name in re.findall(r"\]\(docs/([\w./-]+\.md)\)", line.partition(": ")[0]):
                made[-1][title].append(name)
    return [group for group in made if any(group.values())]


def led(match: re.Match[str], here: str) -> str:
    """The target of a link of the page `here`, in the site."""
    target, anchor = match[1], match[2] or ""
    if "://" in target or target.startswith("mailto:"):
        return match[0]
    name = in_tree(target, here)
    in_docs = name.startswith("docs/")
    place = name.removeprefix("docs/") if in_docs else TOP.get(name) or file_place(name)
    return posixpath.relpath(place, posixpath.dirname(here) or ".") + anchor


def in_tree(target: str, here: str) -> str:
    """The path in the tree of the file that the page `here` of the site calls `target`."""
    page = PLACES.get(here) or f"docs/{here}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def outside(files: Any) -> set[str]:
    """The files of the tree, neither pages nor pictures, to which pages link."""
    named = set()
    for file in files.documentation_pages():
        for target, _ in LINK.findall(file.content_string):
            name = in_tree(target, file.src_uri) if "://" not in target else ""
            if name and not name.startswith(("docs/", "..")) and name not in TOP and (ROOT / name).exists():
                named.add(name)
    return named


def file_place(name: str) -> str:
    """The place in the site of the file `name` of the tree."""
    return f"files/{name.rstrip('/')}.md"


def file_page(name: str) -> str:
    """A page with the text of a file, or with the names of a folder's."""
    path = ROOT / name
    title = f"---\ntitle: {name}\nsearch:\n  exclude: true\n---\n\n# {name}\n\n"
    if path.is_dir():
        inside = sorted(one.name for one in path.iterdir() if not one.name.startswith(("_", ".")))
        return title + "".join(f"- `{one}`\n" for one in inside)
    fence = "`" * 5
    return f"{title}{fence}{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text().rstrip()}\n{fence}\n"


def found(package: str) -> bool:
    """Whether the tree has the package."""
    return (ROOT / ".typing" / Path(*package.split(".")) / "__init__.py").is_file()


def api_place(package: str) -> str:
    """The place in the site of a package's page."""
    return f"api/{PurePosixPath(*package.split('.')).name}.md"


def api_page(package: str, title: str) -> str | None:
    """The page of a package: its docstring, and all that it offers. None if it is not there."""
    if not found(package):
        return None
    text = f"# {title}\n\n`import {package}`\n\n::: {package}\n"
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        fields = getattr(getattr(module, name), "model_fields", None)
        if fields:
            text += f"\n## Fields of {name}\n\n| field | default | meaning |\n|---|---|---|\n"
            text += "".join(f"| `{key}` | {default(one)} | {meaning(one)} |\n" for key, one in fields.items())
    return text


def default(field: Any) -> str:
    """The default of a field as a table has it."""
    if field.is_required():
        return "required"
    value = repr(field.get_default(call_default_factory=True))
    return f"`{value if len(value) <= LONGEST_DEFAULT else value[:LONGEST_DEFAULT] + '...'}`"


def meaning(field: Any) -> str:
    """The description of a field as a table has it."""
    return str(field.description or "").replace("|", "\\|")


def indented(markdown: str) -> str:
    """The text with lines of lists indented by four, where the house indents by two or three.

    A number after such a line begins an item only behind an empty line.
    """
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        space = len(line) - len(line.lstrip(" "))
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and 2 <= space <= 3:
            line = "    " + line.lstrip(" ")
        elif not fenced and NUMBER.match(line) and lines and lines[-1].startswith("    "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def on_post_build(config: Any) -> None:
    """End the build if a page loads anything from another host."""
    for path in sorted(Path(config.site_dir).rglob("*.html")):
        if hosts := loaded(path.read_text()):
            raise RuntimeError(f"{path.name} loads from another host: {', '.join(sorted(hosts))}")


def loaded(text: str) -> set[str]:
    """The addresses on other hosts from which a page loads scripts, styles, pictures or frames."""
    return set(LOADS.findall(text))
