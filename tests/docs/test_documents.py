"""The documents' code runs, from top to bottom, and the two commands on the first page exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]
WITH_CODE = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]


def code_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


SLOW = (
    "combining",
    "comparing",
    "densities",
    "flow",
    "geometry",
    "metanet",
    "samplers",
    "stuck_chains",
    "symmetry",
    "three_geometries",
    "transformation_sampling",
    "two_uncertainties",
)
"""Documents whose code takes half a minute or more; `make docs` and `make test-all` run them."""


def marked(path):
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])


@pytest.mark.parametrize("path", [marked(path) for path in WITH_CODE])
def test_code_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": path.stem}
    for i, block in enumerate(code_blocks(path)):
        exec(compile(block, f"{path.name}, block {i}", "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_links_and_pictures_exist(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_two_commands_are_targets():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "make demo" in listed and "make test" in listed


def test_glossary_defines_each_term_once_in_order():
    terms = re.findall(r"^\| \*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(terms) > 30
    assert terms == sorted(set(terms), key=str.lower)


def test_numbers_of_the_choice_of_methods_stand_in_the_tables_that_it_links_to():
    """A line's numbers with a point or a comma stand in one of the line's tables."""
    path = ROOT / "docs" / "choosing.md"
    paragraphs = re.split(r"\n(?=\||- |\n)", path.read_text(encoding="utf-8"))
    claims = [each for each in paragraphs if re.search(r"\]\(\.\./(experiments|benchmarks)/", each)]
    assert len(claims) > 12
    for claim in claims:
        linked = re.findall(r"\]\((\.\./(?:experiments|benchmarks)/[^)]+\.md)\)", claim)
        told = "".join((path.parent / table).read_text(encoding="utf-8") for table in linked)
        missing = [number for number in re.findall(r"\d[\d,]*[.,]\d+", claim) if not states(told, number)]
        assert not missing, claim


def states(text, number):
    """Whether `number` stands in the text as it is, not as part of a longer one."""
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)", text) is not None
