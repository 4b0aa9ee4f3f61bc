"""Fetching: a public file, checked against its SHA-256 and kept in a cache.

A file is taken from the first of these places that has it: the local directory (the `directory` option, or
the environment variable WEIGHTSCAPE_DATA), the cache (WEIGHTSCAPE_CACHE, or the user's cache directory), the
network. A download is whole and right, or it leaves nothing behind.
"""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weightscape.core.checks import InputError, require
from weightscape.core.files import write_atomically

Progress = Callable[[int, int | None], object]
"""Called with the bytes so far and the bytes in all, where known."""

_CHUNK_SIZE = 1 << 20
_TIMEOUT_SECONDS = 30


def cache_directory() -> Path:
    """WEIGHTSCAPE_CACHE, or `weightscape` in the user's cache directory of this platform."""
    chosen = os.environ.get("WEIGHTSCAPE_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "weightscape"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weightscape"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weightscape"


def local_file(name: str, directory: str | Path | None = None) -> Path | None:
    """The file in the local directory, or None where there is no such directory or file.

    With an explicit `directory` the file must be there.
    """
    chosen = directory or os.environ.get("WEIGHTSCAPE_DATA")
    if not chosen:
        return None
    remedy = "Check `directory` or WEIGHTSCAPE_DATA."
    require(Path(chosen).is_dir(), "The local data directory must exist", f"no directory `{chosen}`", remedy)
    path = Path(chosen) / name
    optional = directory is None
    require(optional or path.is_file(), f"`{path}` must be a file", "nothing there", "Check `directory`.")
    return path if path.is_file() else None


def require_local_file(name: str, directory: str | Path | None = None) -> Path:
    """The file in the local directory, for data that cannot be fetched."""
    path = local_file(name, directory)
    if path is None:
        chosen = directory or os.environ.get("WEIGHTSCAPE_DATA")
        remedy = "Put it in a directory and name that in WEIGHTSCAPE_DATA or `directory`."
        raise InputError(f"`{name}` must be in the local data directory, got none in {chosen or 'any'}. {remedy}")
    return path


def fetch(url: str, sha256: str, name: str, *, progress: Progress | None = None) -> Path:
    """The file of this `name` in the cache, downloaded from `url` if it is not there yet.

    The checksum is verified on every use, so a damaged or foreign file is never read.
    """
    path = cache_directory() / name
    if not path.is_file():
        write_atomically(path, lambda part: _download(url, sha256, path, part, progress))
    elif _digest(path) != sha256:
        raise InputError(f"`{path}` must have SHA-256 {sha256}, got {_digest(path)}. Delete it and try again.")
    return path


def read_url(url: str, path: Path) -> bytes:
    """The bytes at `url`; an error says that `path` is where the data may be placed by hand."""
    with _open(url, path) as response:
        return b"".join(iter(lambda: _read(response, url, path), b""))


def _download(url: str, sha256: str, path: Path, part: Path, progress: Progress | None) -> None:
    digest = hashlib.sha256()
    with _open(url, path) as response, part.open("wb") as target:
        total = int(response.headers["Content-Length"]) if response.headers.get("Content-Length") else None
        while chunk := _read(response, url, path):
            target.write(chunk)
            digest.update(chunk)
            if progress is not None:
                progress(target.tell(), total)
    came, remedy = digest.hexdigest(), "The source changed or the download was disturbed; nothing was kept."
    require(came == sha256, f"`{url}` must have SHA-256 {sha256}", came, remedy)


def _open(url: str, path: Path) -> Any:
    try:
        return urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise _unreachable(url, path, error) from error


def _read(response: Any, url: str, path: Path) -> bytes:
    try:
        return response.read(_CHUNK_SIZE)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, path, error) from error


def _unreachable(url: str, path: Path, error: Exception) -> InputError:
    reason = " ".join(str(getattr(error, "reason", None) or error).split())
    remedy = f"Set WEIGHTSCAPE_DATA to a directory that has the data, or place the file at `{path}`."
    return InputError(f"`{url}` must be reachable, got {reason}. {remedy}")


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
