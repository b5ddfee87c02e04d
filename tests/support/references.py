"""The search for names in prose that do not exist: in docstrings, comments, descriptions and pages, by reading the
code.

Text in backticks is looked up: a path as a file, an expression as names. A name exists if the code has it as an
identifier, as a register or as a word of a string. A dotted name is looked up in its class or module, where the tree
has one of that name.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = ["OUTSIDE", "ROOT", "Reference", "Tree", "exists", "missing", "product_files", "read", "texts_of"]

ROOT = Path(__file__).resolve().parents[2]
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
REGISTER = re.compile(r"(?<![\w.`*-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*-])")
PATH = re.compile(r"[\w.*/-]*\.(?:py|md|rdl|toml|cpp|h|sv|svg|png|json|txt)|[\w.-]+(?:/[\w.*-]+)*/")

PROSE_IN_CODE = re.compile(r'//.*|#(?!\s*(?:if|include|define|endif)).*|desc = "[^"]*"')

OUTSIDE = {
    "COMM_WORLD": "a name of mpi4py that is not here",
    "MPI.COMM_WORLD": "the same",
    "MPI.Wtime()": "a name of mpi4py that is not here",
    "Comm.Get_attr": "a name of mpi4py that is not here",
    "VipRegisterMemory": "a call of the Virtual Interface Architecture",
    "VIP_CONN_HANDLE": "a type of VIPL in C",
    "VIP_DESCRIPTOR": "a type of VIPL in C",
    "VIP_MEM_ATTRIBUTES": "a type of VIPL in C",
    "VIP_NET_ADDRESS": "a type of VIPL in C",
    "VIP_NIC_ATTRIBUTES": "a type of VIPL in C",
    "VIP_NIC_HANDLE": "a type of VIPL in C",
    "VIP_PROTECTION_HANDLE": "a type of VIPL in C",
    "VIP_VI_ATTRIBUTES": "a type of VIPL in C",
    "VIP_VI_HANDLE": "a type of VIPL in C",
    "Next": "a field of a descriptor in the VI Architecture Specification",
    "NextHandle": "the same",
    "getrusage": "a call of the operating system",
    "__index__": "a method of Python",
    "lanikai_router.v": "a file that `lanikai verilog` writes",
    "lanikai_router.f": "the same",
    "lanikai_router.sdc": "the same",
    "lanikai_nic_processor": "a map of registers that `lanikai verilog` writes",
    "lanikai_nic_host": "the same",
    "lanikai_router_agent": "the same",
    "lanikai_rate_control": "a module that `lanikai verilog` writes",
    "NAME_next": "a name of such a module",
    "router_tb.v": "a file of the reader's own",
    "hello.py": "a file of the reader's own",
    "trace.json": "the same",
    "firmware/checked.py": "a file that a guide has the reader write",
    "hdl/vl_arbiter/packet_turns.py": "the same",
    "sim/experiments/idt_ratio.py": "the same",
    "iverilog -g2012": "a command",
    "NO_COLOR": "a variable of the environment, which Rich reads",
    "CI": "a variable of the environment, which tests read",
    "LANIKAI_TEST_SEED": "the same",
    "ADAPTERS_SEED": "the same",
    "ADMISSION_SEED": "the same",
    "ADMISSION_RTL_SEED": "the same",
    "LANIKAI_ICARUS_RUNS": "the same",
    "LANIKAI_ICARUS_CYCLES": "the same",
    "Simulator.add_testbench(..., background=True)": "a call of Amaranth's",
}
"""Names that are not the tree's, and their owners."""


@dataclass(frozen=True)
class Reference:
    """A name in prose: the `file` and `line` (of the text's start) of its place, and its `text`."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass
class Tree:
    """Names that exist.

    - `files`: paths from the root.
    - `words`: identifiers, registers and words of strings.
    - `members`: for each class and module, by its last name, the names that it has.
    - `bases`: for each class, the names of its bases.
    - `written`: names of files in strings: what a run writes.
    """

    files: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=lambda: set(dir(builtins)))
    members: dict[str, set[str]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def has(self, container: str, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the class or module `container` has `name`.

        From a base outside of the tree any name of the code may come (a signature's members are made of strings),
        except from a model of pydantic's.
        """
        if name in self.members.get(container, ()):
            return True
        for base in self.bases.get(container, set()) - seen:
            if self.has(base, name, seen | {container}):
                return True
            if base not in self.members and base != "BaseModel" and name in self.words:
                return True
        return False

    def is_member(self, name: str) -> bool:
        """Whether some class has `name`."""
        return any(name in names for owner, names in self.members.items() if owner[0].isupper())


def product_files() -> list[str]:
    """Paths of the files under version control, with new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


@cache
def nodes_of(name: str) -> list[ast.AST]:
    """Every node of a Python file, the module first."""
    return list(ast.walk(ast.parse((ROOT / name).read_text())))


def read(files: list[str], tree: Tree | None = None) -> Tree:
    """The names of these files, added to those of `tree`."""
    tree = tree or Tree()
    for name in files:
        path = Path(name)
        tree.files |= {name, *(f"{parent}" for parent in path.parents)}
        if path.suffix == ".py":
            nodes = nodes_of(name)
            tree.words |= words_of(nodes)
            tree.written |= files_in_strings(nodes)
            stem = path.parent.name if path.stem == "__init__" else path.stem
            names = names_of(nodes[0]) | siblings(path, files)
            tree.members.setdefault(stem, set()).update(names)
            dotted = ".".join(["lanikai", *path.with_suffix("").parts]).removesuffix(".__init__")
            tree.members[dotted] = names
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    add_class(tree, node)
            tree.words |= {stem, path.name}
        elif path.suffix in (".rdl", ".cpp", ".h", ".sv", ".toml") or path.name == "Makefile":
            text = PROSE_IN_CODE.sub("", (ROOT / name).read_text())
            tree.words.update(IDENTIFIER.findall(text))
        else:
            tree.words.add(path.name)
    return tree


def siblings(path: Path, files: list[str]) -> set[str]:
    """The modules of a package."""
    if path.name != "__init__.py":
        return set()
    inside = [Path(name).relative_to(path.parent) for name in files if Path(name).is_relative_to(path.parent)]
    return {part.parts[0].removesuffix(".py") for part in inside}


def docstring_of(node: ast.AST) -> ast.Constant | None:
    """A node's docstring, or the node itself if it is a string that stands alone (an attribute's docstring)."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return node.value
    return None


def words_of(nodes: list[ast.AST]) -> set[str]:
    """Identifiers of a module, and the words of its strings other than docstrings."""
    prose = {id(found) for node in nodes if (found := docstring_of(node))}
    words: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.arg) or (isinstance(node, ast.keyword) and node.arg):
            words.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            words.add(node.name)
        elif isinstance(node, ast.alias):
            words.update(node.name.split("."), [node.asname or ""])
        elif isinstance(node, ast.ImportFrom) and node.module:
            words.update(node.module.split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            words.update(IDENTIFIER.findall(re.sub(r"`[^`]*`", " ", node.value)))
    return words


def files_in_strings(nodes: list[ast.AST]) -> set[str]:
    """Names of files in the strings of a module other than docstrings."""
    prose = {id(found) for node in nodes if (found := docstring_of(node))}
    strings = (
        n.value
        for n in nodes
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in prose
    )
    return {name for text in strings for name in re.findall(r"[\w-]+\.[a-z]+", text)}


def names_of(node: ast.AST) -> set[str]:
    """Names that a module or class defines at its own level, in conditions too."""
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(child.name)
        elif isinstance(child, (ast.Assign, ast.AnnAssign)):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in child.names}
        elif isinstance(child, (ast.If, ast.Try, ast.With)):
            names |= names_of(child)
    return names


def add_class(tree: Tree, node: ast.ClassDef) -> None:
    """Add a class's own names, the names that its methods give `self`, and words of their strings: members of a
    signature."""
    members = names_of(node) | {"config", "signature"}
    for child in ast.walk(node):
        if (
            isinstance(child, ast.Attribute)
            and isinstance(child.value, ast.Name)
            and child.value.id == "self"
        ):
            members.add(child.attr)
        elif isinstance(child, ast.Dict):
            members |= {
                key.value
                for key in child.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    tree.members.setdefault(node.name, set()).update(members)
    bases = {IDENTIFIER.findall(ast.unparse(base).partition("[")[0])[-1] for base in node.bases}
    tree.bases.setdefault(node.name, set()).update(bases)


def of_python(name: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, comment and described field of a Python file."""
    text = (ROOT / name).read_text()
    for node in nodes_of(name):
        if found := docstring_of(node):
            yield found.lineno, found.value
        elif isinstance(node, ast.keyword) and node.arg == "description":
            words = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            yield node.value.lineno, "".join(word for word in words if isinstance(word, str))
    start, comment = 0, ""
    for line, content in enumerate([*text.splitlines(), ""], 1):
        if match := re.search(r"(?:^|\s)# (.*)$", content):
            start, comment = (start, f"{comment} {match[1]}") if comment else (line, match[1])
        elif comment:
            yield start, comment
            comment = ""


def of_comments(name: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment of a file in C++, Verilog or TOML, and of each description in SystemRDL."""
    sign = {".toml": "#", ".rdl": 'desc = "'}.get(Path(name).suffix, "//")
    start, comment = 0, ""
    for line, content in enumerate([*(ROOT / name).read_text().splitlines(), ""], 1):
        _, found, text = content.partition(sign)
        if found:
            start, comment = (start, f"{comment} {text}") if comment else (line, text)
        elif comment:
            yield start, comment
            comment = ""


def of_page(name: str) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph of a page, its blocks of code left out."""
    text = re.sub(
        r"```.*?```", lambda block: "\n" * block[0].count("\n"), (ROOT / name).read_text(), flags=re.DOTALL
    )
    line = 1
    for paragraph in text.split("\n\n"):
        yield line, paragraph
        line += paragraph.count("\n") + 2


def texts_of(name: str) -> Iterator[tuple[int, str]]:
    """Line and text of all prose of a file."""
    if name.endswith(".py"):
        return of_python(name)
    return of_page(name) if name.endswith(".md") else of_comments(name)


def missing(tree: Tree, name: str) -> list[Reference]:
    """The references in a file to names that do not exist."""
    found: list[Reference] = []
    for line, text in texts_of(name):
        for quoted in re.findall(r"`{1,2}([^`]+)`{1,2}", text):
            quoted = " ".join(quoted.split())
            if not exists(tree, quoted):
                found.append(Reference(name, line, quoted))
        for register in REGISTER.findall(re.sub(r"`[^`]*`", " ", text)):
            if register not in tree.words and register not in OUTSIDE:
                found.append(Reference(name, line, register))
    return found


def exists(tree: Tree, text: str) -> bool:
    """Whether a text in backticks exists: as a file, or each of its names."""
    if text in OUTSIDE:
        return True
    if PATH.fullmatch(text) or re.fullmatch(r"\w+/[A-Z][\w-]+", text):
        return file_exists(tree, text)
    try:
        expression = ast.parse(text, mode="eval").body
    except SyntaxError:
        return True  # a command, a bit pattern, a piece of text
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and not known(tree, node.id):
            return False
        if isinstance(node, ast.keyword) and node.arg and not known(tree, node.arg):
            return False
        if isinstance(node, ast.Attribute) and not attribute_exists(tree, node):
            return False
    return True


def known(tree: Tree, word: str) -> bool:
    """Whether a word is a name of the code.

    - A word that ends in `_` stands for all that begin so.
    - A number at the end counts (`router_1`).
    - `__` joins a port's members in Verilog (`tx__payload`).
    - `name_` at the start stands for a parameter `name`.
    """
    if word in tree.words or len(word) == 1 or not word.strip("_"):
        return True
    if word.endswith("_"):
        return any(other.startswith(word) for other in tree.words)
    if "__" in word.strip("_"):
        return all(part.isdecimal() or known(tree, part) for part in word.split("__"))
    if word.startswith("name_") and word[4:] in tree.words:
        return True
    word = word.removeprefix("__")
    return re.sub(r"_?\d+(x\d+)?$", "", word) in tree.words


def attribute_exists(tree: Tree, node: ast.Attribute) -> bool:
    """Whether `node` is a name of the class or module before its dot. For another thing, it is whether the code has the
    name."""
    owner = ast.unparse(node.value)
    if not re.fullmatch(r"[\w.]+", owner) or node.attr.endswith("_"):
        return known(tree, node.attr)
    before = owner if owner in tree.members else owner.rpartition(".")[2]
    # A name in lower case may be a variable that is called as a module is, unless a class or constant follows.
    certain = (
        before[0].isupper() or owner.startswith("lanikai.") or (node.attr[0].isupper() and owner == before)
    )
    if before in tree.members and certain:
        return tree.has(before, node.attr) or (before[0].islower() and tree.is_member(node.attr))
    return known(tree, node.attr)


def file_exists(tree: Tree, text: str) -> bool:
    """Whether a path is in the tree, from its root or as the end of a path in it, or a file that a run writes.

    `*` stands for anything, and so does a word in capitals (`points/NN/`). A mere suffix is no path.
    """
    if re.fullmatch(r"\.[a-z]+", text) or text in tree.written or text.rstrip("/") in tree.words:
        return True
    if any(re.search(r"[A-Z]", part) and part != "README.md" for part in text.split("/")[1:]):
        return True
    pattern = re.escape(text.rstrip("/").removeprefix("./")).replace(r"\*", "[^/]*")
    return any(re.search(rf"(?:^|/){pattern}$", file) for file in tree.files)
