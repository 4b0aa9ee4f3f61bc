"""Settings and fixtures that every test shares.

Two CPU devices, so that sharded code is tested as such; rank promotion is an error; nothing is written
outside pytest's own directories. weightscape is not imported here: the shape checker must see it first.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxtyping
import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
SLOW = ROOT / "tests" / "slow.txt"
_MOST_MAPS = 45_000

# All must be set before any backend starts, which importing a test module may do.
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")

if jax.__version_info__ < (0, 11):  # tests/test_canary.py says why; later versions may not know the flag
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_experimental_ynn_fusion_type=-reduce"

# Compiled programs are kept between runs, which halves the time of a second one.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

os.environ["MPLBACKEND"] = "Agg"
# Kept between runs: with the empty cache of a fresh home matplotlib looks through all fonts.
os.environ["MPLCONFIGDIR"] = str(ROOT / ".pytest_cache" / "matplotlib")
if SHARED_DATA.is_dir():
    os.environ.setdefault("WEIGHTSCAPE_DATA", str(SHARED_DATA))


def pytest_configure(config: pytest.Config) -> None:
    """Let jax compile anew where a stored program is half written: by another worker, or one that was stopped."""
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `slow.txt` names."""
    named = set(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in named:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def _private_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests, and processes that they start, a home and a cache of their own."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("USERPROFILE", str(home))
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        patch.setenv("WEIGHTSCAPE_CACHE", str(home / "cache" / "weightscape"))
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_programs() -> Iterator[None]:
    """Let go of compiled programs before they are too many, between modules."""
    yield
    _let_go_of_programs()


@pytest.fixture(autouse=True)
def _few_programs_of_slow_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same between slow tests, a module of which may compile too many; others compile little."""
    yield
    if request.node.get_closest_marker("slow"):
        _let_go_of_programs()


def _let_go_of_programs() -> None:
    """A process may hold some 65,000 memory maps on Linux, each program takes a hundred or more, and past the limit the
    compiler crashes.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_text().count("\n") > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def x64() -> Iterator[None]:
    """Run one test in double precision; arrays made inside it are float64 unless told otherwise."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Run one test without the shape checker, to see the errors that users see."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
