"""The page is one well-formed file that needs no network, and nothing from the data can become markup."""

import re
import stat
from html.parser import HTMLParser

import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.report import Picture, Report, Table, plot_trace, render_page, write_report

VOID = {"meta", "img", "br", "link", "hr", "input"}
EVIL = "<script>alert('x')</script>"


class Checker(HTMLParser):
    """Collects text, attributes and tags, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text.append(data)


def parse(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


def require_offline(page: str) -> None:
    for name, value in parse(page).attributes:
        if name in ("src", "href", "srcset", "action"):
            assert value.startswith(("data:", "#")), value[:60]
    assert "@import" not in page
    assert "url(" not in page
    assert not re.search(r"<(link|script|iframe)\b", page)
    assert "http://" not in page and "https://" not in page


def example(name: str = EVIL) -> Report:
    figure = plot_trace(np.random.default_rng(0).standard_normal((3, 50)))
    table = Table(f"Table of {name}", ("score", name), ((name, "0.1234"),))
    return Report(f"About {name}", f"Summary {name}", (table,), (Picture("trace", name, name, figure),), {name: name})


def test_page_is_well_formed_and_offline_and_holds_the_numbers():
    page = render_page(example("ordinary"))
    require_offline(page)
    text = " ".join(parse(page).text)
    assert "0.1234" in text and "Summary ordinary" in text and "weightscape 0." in text


def test_names_from_the_data_are_escaped():
    page = render_page(example())
    parsed = parse(page)
    assert "script" not in parsed.tags
    assert EVIL in " ".join(parsed.text)
    alts = [value for name, value in parsed.attributes if name == "alt"]
    assert alts == [f"{EVIL}. {EVIL}"]


def test_report_and_figures_are_written_and_readable_by_all(tmp_path):
    page = write_report(example("a"), tmp_path / "deep" / "folder")
    assert page == tmp_path / "deep" / "folder" / "report.html"
    assert (page.parent / "figures" / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (page.parent / "figures" / "trace.svg").read_bytes()
    assert not list(page.parent.rglob("*.part"))
    assert stat.S_IMODE(page.stat().st_mode) & 0o400


def test_the_same_report_gives_the_same_bytes(tmp_path):
    first = write_report(example("a"), tmp_path / "1").read_bytes()
    assert first == write_report(example("a"), tmp_path / "2").read_bytes()


def test_pictures_of_one_name_are_refused(tmp_path):
    report = example("a")
    with pytest.raises(InputError, match="different names"):
        write_report(report._replace(pictures=report.pictures * 2), tmp_path)
    assert not (tmp_path / "report.html").exists()
