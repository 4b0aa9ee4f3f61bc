"""`weightscape demo`: the whole story on bundled data, in a few minutes on two cores."""

import time
from pathlib import Path

import jax

import weightscape
from weightscape.cli.demo_cubic import tell_cubic
from weightscape.cli.demo_flow import flow_method, tell_flow
from weightscape.cli.demo_iris import tell_iris
from weightscape.cli.options import OutFolder, Quiet, Seed
from weightscape.cli.run_folder import RESULT, require_free
from weightscape.cli.screen import Screen
from weightscape.core.files import write_json
from weightscape.data import load, toy
from weightscape.report import Report, write_report
from weightscape.report.describe import described
from weightscape.report.numbers import duration

_FLOW_KEY = 1_000_037
"""Folded into the irises' key for the flow, so that it shares no randomness with the methods it learns from."""


def demo(out: OutFolder = Path("runs/demo"), seed: Seed = 0, quiet: Quiet = False) -> None:
    """Show what a posterior over weights is good for: a cubic with a gap, irises, a flow; ends in a report."""
    began, screen, folder = time.monotonic(), Screen(quiet), out or Path("runs/demo")
    require_free(folder, overwrite=False)
    key_cubic, key_iris = jax.random.split(jax.random.key(seed))
    key_flow = jax.random.fold_in(key_iris, _FLOW_KEY)
    screen.say("1. A noisy cubic with a gap: a single fit, a deep ensemble, and the posterior by HMC.")
    cubic = tell_cubic(key_cubic, toy.cubic(n=40, noise=6.0, seed=seed), screen)
    screen.show(cubic.table)
    screen.say("2. Irises: how near the cheaper methods come to the posterior.")
    irises = load("iris", seed=seed)
    iris, hmc = tell_iris(key_iris, irises, screen)
    screen.show(iris.table)
    screen.say("3. A flow: learning from HMC's draws to draw networks, with their density.")
    flow = tell_flow(key_flow, hmc, irises, screen)
    screen.show(flow.table)
    seconds = time.monotonic() - began
    chapters: dict[str, object] = {"cubic": cubic.result, "iris": iris.result, "flow": flow.result}
    write_json(folder / RESULT, _result(seed, seconds, chapters))
    report = Report(
        title="Networks that know what they do not know",
        summary=f"{cubic.finding} {iris.finding} {flow.finding}",
        tables=(cubic.table, iris.table, flow.table),
        pictures=(*cubic.pictures, *iris.pictures, *flow.pictures),
        settings=_settings(seed, seconds),
    )
    page = write_report(report, folder)
    screen.say(f"{report.summary}\nTook {duration(seconds)}. The report, to open in a browser:")
    screen.path(page)


def _result(seed: int, seconds: float, chapters: dict[str, object]) -> dict[str, object]:
    return {"command": "demo", "version": weightscape.__version__, "seed": seed, "seconds": seconds, **chapters}


def _settings(seed: int, seconds: float) -> dict[str, str]:
    return {
        "data": "the noisy cubic y = x³ + 6ε with 40 training points; Fisher's irises, 120 training rows",
        "network": "cubic: 50 relu units in one hidden layer; irises: 16 tanh units",
        "prior of the weights": "cubic: normal, scale 3, divided by √inputs for weights; irises: normal, scale 1",
        "likelihood": "cubic: Gaussian, its noise scale inferred under Gamma(1/2, 1); irises: softmax",
        "methods": "MAP; deep ensemble of 10; HMC with 4 chains of 500 draws, 128 leapfrog steps each",
        "flow": described(flow_method()),
        "seed": str(seed),
        "tempering": "none: the posterior itself",
        "time": duration(seconds),
        "command": f"weightscape demo --seed {seed}",
    }
