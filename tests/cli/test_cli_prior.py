"""`weightscape prior` draws the whole gallery."""

import json

import pytest
from tests.report.test_report_page import parse, require_offline

from weightscape.cli.main import run_command
from weightscape.report.prior_gallery import gallery_priors

PICTURES = ("classes", "functions", "jumps", "outlier", "sparsity", "width")


@pytest.mark.slow
def test_the_gallery_end_to_end(capsys, monkeypatch, tmp_path):
    """With functions of two priors, for time: the others cost a compilation each and take the same way."""
    two = {name: gallery_priors()[name] for name in ("Normal", "Cauchy")}
    monkeypatch.setattr("weightscape.report.prior_gallery.gallery_priors", lambda: two)
    assert run_command(["prior", "--out", str(tmp_path), "--seed", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == str(tmp_path / "report.html")
    for ending in ("png", "svg"):
        found = sorted(path.name for path in (tmp_path / "figures").glob(f"*.{ending}"))
        assert found == [f"prior-{name}.{ending}" for name in PICTURES]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seed"] == 1 and set(result["priors"]) == set(two)
    # The largest of 50 normal weights has little of the sum of squares, the largest of 50 Cauchy weights most of it.
    shares = {name: numbers["largest unit"] for name, numbers in result["priors"].items()}
    assert shares["Normal"] < 0.2 and 0.5 < shares["Cauchy"] < 0.8
    assert f"{result['priors']['Normal']['height, tanh']:.3f}" in printed
    page = (tmp_path / "report.html").read_text()
    require_offline(page)
    text = " ".join(parse(page).text)
    assert "StudentT(degrees=1, scale=1)" in text and "weightscape prior --seed 1" in text


def test_a_file_in_the_way_is_refused(capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    assert run_command(["prior", "--out", str(tmp_path / "taken")]) == 2
    assert "must be a folder" in capsys.readouterr().err
