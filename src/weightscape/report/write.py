"""Writing a report: the page, and every figure beside it as PNG and SVG.

    report.html
    figures/NAME.png, figures/NAME.svg

Each file is written atomically and the page last, so a page that is there has its figures.
"""

import os
from pathlib import Path

from weightscape.core.checks import require
from weightscape.core.files import write_atomically, write_text
from weightscape.report.page import figure_bytes, render_page
from weightscape.report.report import Picture, Report

PAGE = "report.html"
FIGURES = "figures"


def write_report(report: Report, folder: str | os.PathLike) -> Path:
    """Write a report into a folder and return the path of its page."""
    names = [picture.name for picture in report.pictures]
    require(len(set(names)) == len(names), "Pictures of a report must have different names", names, "Rename one.")
    place = Path(folder)
    for picture in report.pictures:
        _write_figure(picture, place / FIGURES)
    write_text(place / PAGE, render_page(report))
    return place / PAGE


def _write_figure(picture: Picture, folder: Path) -> None:
    for ending in ("png", "svg"):
        content = figure_bytes(picture.figure, ending)
        write_atomically(folder / f"{picture.name}.{ending}", lambda part, content=content: part.write_bytes(content))
