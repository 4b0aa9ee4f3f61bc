"""What the commands print and write beside their main work."""

import json
import shutil

import numpy as np
from tests.report.test_report_page import EVIL, parse, require_offline

import weightscape as ws
from weightscape.cli.chapter import Chapter
from weightscape.cli.choose import MethodOptions, ModelOptions, choose_method, choose_model, expected_seconds
from weightscape.cli.main import run_command
from weightscape.data import from_arrays
from weightscape.inference import HMC, DeepEnsemble
from weightscape.report import Table


def test_version_and_help(capsys):
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out == f"weightscape {ws.__version__}\n"
    assert run_command(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "fit", "predict", "report", "data"))


def test_data_lists_and_shows(capsys, tmp_path):
    assert run_command(["data"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ws.data.names())
    assert run_command(["data", "iris", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "120 training rows and 30 test rows" in shown and "setosa, versicolor, virginica" in shown
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["rows"] == {"train": 120, "test": 30} and len(result["inputs"]) == 4


def test_quiet_prints_only_the_path(capsys, regression, tmp_path):
    capsys.readouterr()
    assert run_command(["predict", str(regression.folder), str(regression.table), "-q", "--out", f"{tmp_path}/p"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/p\n" and printed.err == ""


def test_the_report_comes_again_from_the_folder_alone(capsys, regression, tmp_path):
    regression_page = (regression.folder / "report.html").read_bytes()
    assert run_command(["report", str(regression.folder), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == regression_page
    assert (tmp_path / "result.json").read_bytes() == (regression.folder / "result.json").read_bytes()


def test_pages_are_offline_and_hold_settings_and_scores(regression, classification):
    for fit, pictures in ((regression, 6), (classification, 5)):
        page = (fit.folder / "report.html").read_text()
        require_offline(page)
        text = " ".join(parse(page).text)
        scores = json.loads((fit.folder / "result.json").read_text())["scores"]
        assert f"{scores['nll']:.3f}" in text
        for words in ("health of the chains", "prior of the weights", "Normal(scale=1)", "tempering", "seed"):
            assert words in text
        assert len(list((fit.folder / "figures").glob("*.png"))) == pictures
    assert "90 % intervals caught" in (regression.folder / "report.html").read_text()


def test_a_hostile_class_stays_text(classification):
    page = (classification.folder / "report.html").read_text()
    assert "script" not in parse(page).tags
    assert EVIL not in page


def test_overwriting_replaces_everything(classification, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(classification.folder, folder)
    assert (folder / "figures" / "class-map.png").exists()
    options = ["--method", "map", "--hidden", "", "--quiet", "--out", str(folder), "--overwrite"]
    assert run_command(["fit", "noisy_line", *options]) == 0
    assert json.loads((folder / "result.json").read_text())["data"]["name"] == "noisy_line"
    assert not (folder / "figures" / "class-map.png").exists()
    assert ws.Draws.load(folder).model.likelihood.task == "regression"


def _posterior(num_points: int):
    generator = np.random.default_rng(0)
    data = from_arrays(generator.standard_normal((num_points, 4)), generator.standard_normal(num_points))
    return ws.Model(ws.networks.MLP((16,)), ws.likelihoods.Gaussian(), ws.priors.Normal()).condition(data.train)


def test_the_method_is_chosen_by_its_cost():
    small, large = _posterior(200), _posterior(200_000)
    chosen = choose_method(small, MethodOptions())
    assert isinstance(chosen.method, HMC) and "160 points × 97 weights" in chosen.why
    chosen = choose_method(large, MethodOptions(chains=3))
    assert isinstance(chosen.method, DeepEnsemble) and "a deep ensemble, since HMC" in chosen.why
    assert chosen.method.num_members == 3 and chosen.method.batch_size == 256
    assert isinstance(choose_method(small, MethodOptions(minutes=0.05)).method, DeepEnsemble)
    assert expected_seconds(HMC(), large) > 100 * expected_seconds(HMC(), small)


def test_noise_is_given_in_the_units_of_the_target():
    data = ws.data.load("diabetes")
    likelihood = choose_model(data, ModelOptions(noise="2.5")).likelihood
    np.testing.assert_allclose(float(likelihood.scale) * float(data.train.scaling.y_scale), 2.5, rtol=1e-5)


def test_the_demo_tells_its_stories(capsys, monkeypatch, tmp_path):
    """With short runs: the whole demo is run by `make demo`."""
    quick = dict.fromkeys(("MAP", "ensemble", "HMC"), DeepEnsemble(num_members=2, num_steps=20))
    # The chapter itself is in test_flow.py.
    chapter = Chapter("A flow was told.", Table("a flow", ("measure", "value"), (("J", "1"),)), (), {"gap": 1.0})
    monkeypatch.setattr("weightscape.cli.demo.tell_flow", lambda key, hmc, dataset, screen: chapter)
    monkeypatch.setattr("weightscape.cli.chapter.methods", lambda: quick)
    assert run_command(["demo", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == str(tmp_path / "report.html")
    require_offline((tmp_path / "report.html").read_text())
    result = json.loads((tmp_path / "result.json").read_text())
    # Members of 20 steps are nearly their starts; what doubt means is for `make demo` to show.
    assert result["cubic"]["HMC"]["doubt on data"] > 0 and result["cubic"]["HMC"]["outside"] > 0
    assert 0 <= result["iris"]["ensemble"]["total variation"] <= 1
    assert result["flow"] == {"gap": 1.0} and "A flow was told." in (tmp_path / "report.html").read_text()
    assert (tmp_path / "figures" / "cubic-bands.png").exists()
