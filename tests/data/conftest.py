"""Where the large real datasets are, if they are anywhere."""

import os
from pathlib import Path

import pytest

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def local_data(monkeypatch) -> Path:
    directory = Path(os.environ.get("WEIGHTSCAPE_DATA") or _BESIDE_THE_REPOSITORY)
    if not directory.is_dir():
        pytest.skip(f"no local data at {directory}; set WEIGHTSCAPE_DATA to a directory that has them")
    monkeypatch.setenv("WEIGHTSCAPE_DATA", str(directory))
    return directory


@pytest.fixture
def empty_cache(monkeypatch, tmp_path) -> Path:
    """A machine without data: no local directory, nothing in the cache."""
    monkeypatch.delenv("WEIGHTSCAPE_DATA", raising=False)
    monkeypatch.setenv("WEIGHTSCAPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
