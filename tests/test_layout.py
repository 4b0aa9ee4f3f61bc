"""The source obeys the layout: layers, no cycles, no hidden imports, nothing unsafe, documented and short.

Each rule is a function from a source tree to the places that break it. It runs over src/weightscape, where it must
find nothing, and over a small tree with one fault, which it must find.
"""

import ast
import graphlib
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "weightscape"
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec"}
MOST_MODULE_LINES = 300
MOST_FUNCTION_LINES = 40


class Module(NamedTuple):
    """A source file, its dotted name and its syntax tree."""

    name: str
    lines: list[str]
    tree: ast.Module
    is_package: bool


Tree = dict[str, Module]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_tree(source: Path) -> Tree:
    """Every module under `source`, by dotted name."""
    modules = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, text.splitlines(), ast.parse(text), is_package)
    return modules


def layers() -> list[str]:
    """The packages in import order, from the one list that the import linter reads too."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [entry.strip("()").removeprefix(f"{PACKAGE}.") for entry in reversed(listed)]


def imported(module: Module, modules: Tree) -> Iterator[tuple[str, ast.stmt]]:
    """The dotted names that a module imports: a submodule where there is one, else the module it is taken from."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute_origin(module, node)
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield (submodule if submodule in modules else origin), node


def absolute_origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def layer_of(name: str) -> str:
    """`core` for weightscape.core.tree; empty for weightscape itself and for other libraries."""
    parts = name.split(".")
    return parts[1] if parts[0] == PACKAGE and len(parts) > 1 else ""


def unlisted_packages(modules: Tree) -> list[str]:
    known = {"", *layers()}
    return sorted({layer_of(name) for name in modules} - known)


def upward_imports(modules: Tree) -> list[str]:
    rank = {layer: i for i, layer in enumerate(layers())}
    return [
        f"{module.name}:{node.lineno} imports {target}"
        for module in modules.values()
        for target, node in imported(module, modules)
        if rank.get(layer_of(target), -1) > rank.get(layer_of(module.name), len(rank))
    ]


def import_cycles(modules: Tree) -> list[str]:
    graph = {
        module.name: {target for target, _ in imported(module, modules) if target in modules}
        for module in modules.values()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" imports ".join(reversed(error.args[1]))]
    return []


def functions(module: Module) -> Iterator[Function]:
    return (node for node in ast.walk(module.tree) if isinstance(node, Function))


def imports_in_functions(modules: Tree) -> list[str]:
    return [
        f"{module.name}:{node.lineno} in {function.name}"
        for module in modules.values()
        for function in functions(module)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def vague_module_names(modules: Tree) -> list[str]:
    return [name for name in modules if name.rpartition(".")[2].strip("_") in VAGUE_NAMES]


def unsafe_code(modules: Tree) -> list[str]:
    imports = [
        f"{module.name}:{node.lineno} imports {target}"
        for module in modules.values()
        for target, node in imported(module, modules)
        if target.partition(".")[0] in UNSAFE_MODULES
    ]
    calls = [
        f"{module.name}:{node.lineno} {reason}"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and (reason := unsafe_call(node))
    ]
    return imports + calls


def unsafe_call(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
        return f"calls {node.func.id}"
    for keyword in node.keywords:
        refused = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg == "allow_pickle" and not refused:
            return "allows pickle"
    return ""


def missing_docstrings(modules: Tree) -> list[str]:
    return [name for name, module in modules.items() if not ast.get_docstring(module.tree)]


def long_modules(modules: Tree) -> list[str]:
    return [
        f"{name}: {len(module.lines)} lines"
        for name, module in modules.items()
        if len(module.lines) >= MOST_MODULE_LINES
    ]


def long_functions(modules: Tree) -> list[str]:
    return [
        f"{module.name}.{function.name}: {count} lines"
        for module in modules.values()
        for function in functions(module)
        if (count := num_code_lines(function, module.lines)) >= MOST_FUNCTION_LINES
    ]


def num_code_lines(function: Function, lines: list[str]) -> int:
    """Lines from `def` to the end, without the docstring, blank lines and comments."""
    numbers = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    if ast.get_docstring(function):
        docstring = function.body[0]
        numbers -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    texts = [lines[number - 1].strip() for number in numbers]
    return sum(bool(text) and not text.startswith("#") for text in texts)


def function_of(num_lines: int) -> str:
    """A function of `num_lines` lines of code, with text that must not count."""
    body = ["    # why", "", *["    x += 1"] * (num_lines - 1)]
    return "\n".join(["def grow(x):", '    """Documented', "", '    at length."""', *body])


Rule = Callable[[Tree], list[str]]
FAULTS: list[tuple[Rule, str, str]] = [
    (unlisted_packages, "extras/x.py", ""),
    (upward_imports, "core/x.py", "from weightscape.data import Dataset"),
    (upward_imports, "core/x.py", "import weightscape.cli.main"),
    (upward_imports, "core/x.py", "from weightscape import data"),
    (upward_imports, "core/x.py", "from ..data import Dataset"),
    (upward_imports, "core/x.py", "def f():\n    from weightscape.data import Dataset"),
    (import_cycles, "core/x.py", "from weightscape.core import tree"),
    (import_cycles, "core/x.py", "from . import tree"),
    (import_cycles, "core/x.py", "import weightscape"),
    (imports_in_functions, "core/x.py", "def f():\n    import json"),
    (
        imports_in_functions,
        "core/x.py",
        "class A:\n    async def f(self):\n        if self:\n            from os import path",
    ),
    *[(vague_module_names, f"core/{name}.py", "") for name in ("utils", "_helpers", "common", "misc")],
    (vague_module_names, "core/utils/__init__.py", ""),
    (unsafe_code, "core/x.py", "import pickle"),
    (unsafe_code, "core/x.py", "from cloudpickle import dumps"),
    (unsafe_code, "core/x.py", "eval('1')"),
    (unsafe_code, "core/x.py", "exec('1')"),
    (unsafe_code, "core/x.py", "load('x', allow_pickle=True)"),
    (unsafe_code, "core/x.py", "load('x', allow_pickle=not False)"),
    (missing_docstrings, "core/y.py", "x = 1"),
    (long_modules, "core/x.py", "\n" * MOST_MODULE_LINES),
    (long_functions, "core/x.py", function_of(MOST_FUNCTION_LINES)),
    (long_functions, "core/x.py", "class A:\n" + "\n".join("    " + line for line in function_of(99).splitlines())),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in FAULTS))

SOUND = {
    "__init__.py": "from weightscape.core import tree\nfrom weightscape.data import Dataset",
    "core/__init__.py": "from weightscape.core.tree import add",
    "core/tree.py": "from . import x\nimport json\nload('x', allow_pickle=False)\nmodel.eval()",
    "core/x.py": function_of(MOST_FUNCTION_LINES - 1),
    "data/__init__.py": "from weightscape.core import add",
    "cli/main.py": "from weightscape import __version__\nfrom weightscape.data import Dataset",
}


def write_tree(source: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = source / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name == "core/y.py" else f'"""A module."""\n{text}', encoding="utf-8")
    return read_tree(source)


@pytest.fixture(scope="module")
def weightscape_tree() -> Tree:
    return read_tree(ROOT / "src")


@pytest.mark.parametrize("rule", RULES)
def test_weightscape_obeys(rule: Rule, weightscape_tree: Tree):
    assert len(weightscape_tree) > 10
    assert rule(weightscape_tree) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_sound_tree_passes(rule: Rule, tmp_path: Path):
    assert rule(write_tree(tmp_path, SOUND)) == []


@pytest.mark.parametrize(("rule", "name", "text"), FAULTS)
def test_a_fault_is_found(rule: Rule, name: str, text: str, tmp_path: Path):
    assert len(rule(write_tree(tmp_path, SOUND | {name: text}))) == 1


def test_the_list_of_slow_laws_names_tests_that_exist():
    for line in (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            file, _, test = line.partition("::")
            assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), line
