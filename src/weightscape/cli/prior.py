"""`weightscape prior`: a gallery of what priors over weights say about functions, in under a minute on two cores."""

import time
from pathlib import Path

import jax

import weightscape
from weightscape.cli.options import OutFolder, Quiet, Seed
from weightscape.cli.run_folder import RESULT, require_free
from weightscape.cli.screen import Screen
from weightscape.core.files import write_json
from weightscape.report import Report, draw_gallery, write_report
from weightscape.report.describe import described
from weightscape.report.numbers import duration
from weightscape.report.prior_gallery import gallery_priors


def prior(out: OutFolder = Path("runs/prior"), seed: Seed = 0, quiet: Quiet = False) -> None:
    """Draw functions and classes from priors, before any data; ends in a report."""
    began, screen, folder = time.monotonic(), Screen(quiet), out or Path("runs/prior")
    require_free(folder, overwrite=False)
    screen.say("Drawing networks from priors; no data are needed.")
    gallery = draw_gallery(jax.random.key(seed))
    screen.show(gallery.table)
    facts = {"command": "prior", "version": weightscape.__version__, "seed": seed}
    write_json(folder / RESULT, {**facts, "priors": gallery.result})
    report = Report(
        title="What priors over weights say about functions",
        summary=gallery.finding,
        tables=(gallery.table,),
        pictures=gallery.pictures,
        settings=_settings(seed),
    )
    page = write_report(report, folder)
    screen.say(f"{report.summary}\nTook {duration(time.monotonic() - began)}. The report, to open in a browser:")
    screen.path(page)


def _settings(seed: int) -> dict[str, str]:
    priors = {f"prior “{name}”": described(chosen) for name, chosen in gallery_priors().items()}
    return {
        "networks": "functions: one input and 50 hidden units in one layer; classes: two inputs, 50 hidden units",
        **priors,
        "height": "the median over 200 draws of the largest |f(x)| for x from −4 to 4",
        "tallest / lowest": "the 95 % quantile of heights over their 5 % quantile, with tanh",
        "largest unit": "its mean share in the sum of squared output weights",
        "seed": str(seed),
        "command": f"weightscape prior --seed {seed}",
    }
