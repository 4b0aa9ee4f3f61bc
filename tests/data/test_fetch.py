import hashlib
import http.server
import threading
from pathlib import Path

import pytest

from weightscape.core.checks import InputError
from weightscape.data.fetch import cache_directory, fetch, local_file, require_local_file

CONTENT = bytes(range(256)) * 10_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path != "/missing" else 404)
        if self.path == "/broken":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        start = b"ffff\r\n" if self.path == "/broken" else b""
        self.wfile.write(start + CONTENT[: 1000 if self.path in ("/cut", "/broken") else None])

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def _left_behind(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_a_file_is_fetched_once(server, empty_cache):
    seen = []
    path = fetch(f"{server}/data", SHA256, "set/data.bin", progress=lambda done, total: seen.append((done, total)))
    assert path == empty_cache / "set" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert fetch("http://127.0.0.1:1/unreachable", SHA256, "set/data.bin") == path


def test_a_wrong_checksum_leaves_nothing_behind(server, empty_cache):
    with pytest.raises(InputError, match=f"must have SHA-256 {'0' * 64}, got {SHA256}"):
        fetch(f"{server}/data", "0" * 64, "data.bin")
    assert _left_behind(empty_cache) == []


@pytest.mark.parametrize(("path", "words"), [("cut", "must have SHA-256"), ("broken", "must be reachable")])
def test_a_cut_download_leaves_nothing_behind(server, empty_cache, path, words):
    with pytest.raises(InputError) as caught:
        fetch(f"{server}/{path}", SHA256, "data.bin")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert _left_behind(empty_cache) == []


@pytest.mark.parametrize("path", ["missing", None])
def test_what_cannot_be_reached_says_what_to_do(server, empty_cache, path):
    url = f"{server}/{path}" if path else "http://127.0.0.1:1/data"
    with pytest.raises(InputError) as caught:
        fetch(url, SHA256, "data.bin")
    expected = f"Set WEIGHTSCAPE_DATA to a directory that has the data, or place the file at `{empty_cache}/data.bin`."
    assert str(caught.value).endswith(expected)
    assert _left_behind(empty_cache) == []


def test_a_damaged_cached_file_is_not_read(server, empty_cache):
    path = fetch(f"{server}/data", SHA256, "data.bin")
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match=r"Delete it and try again\."):
        fetch(f"{server}/data", SHA256, "data.bin")
    assert path.exists()


def test_the_cache_is_looked_up_at_each_call(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIGHTSCAPE_CACHE", str(tmp_path / "one"))
    assert cache_directory() == tmp_path / "one"
    monkeypatch.delenv("WEIGHTSCAPE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert cache_directory() == tmp_path / "two" / "weightscape"


def test_local_files_come_from_the_option_then_the_environment(monkeypatch, tmp_path):
    for folder in ("option", "environment"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.npz").touch()
    monkeypatch.setenv("WEIGHTSCAPE_DATA", str(tmp_path / "environment"))
    assert local_file("a.npz", tmp_path / "option") == tmp_path / "option" / "a.npz"
    assert local_file("a.npz") == tmp_path / "environment" / "a.npz"
    assert local_file("b.npz") is None
    with pytest.raises(InputError, match=r"b.npz` must be a file, got nothing there"):
        local_file("b.npz", tmp_path / "option")
    monkeypatch.setenv("WEIGHTSCAPE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="The local data directory must exist"):
        local_file("a.npz")


def test_what_is_only_local_says_where_it_belongs(empty_cache):
    with pytest.raises(InputError, match=r"`uci/yacht.npz` must be in the local data directory, got none in any\."):
        require_local_file("uci/yacht.npz")
