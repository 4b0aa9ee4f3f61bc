"""The page: a report as one HTML file that needs nothing but a browser.

Styles are written into the page and figures are embedded as SVG, so nothing is fetched from anywhere; every word that
comes from data is escaped.
"""

import base64
import io
from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

import weightscape
from weightscape.report.report import Picture, Report
from weightscape.report.style import styled

_TEMPLATE = resources.files("weightscape.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
_REM_PER_INCH = 6.6


class Drawn(NamedTuple):
    """A picture ready for the page."""

    picture: Picture
    source: str
    width: str


def render_page(report: Report) -> str:
    """The page as HTML."""
    drawings = [_draw(picture) for picture in report.pictures]
    template = _ENVIRONMENT.from_string(_TEMPLATE)
    return template.render(report=report, drawings=drawings, version=weightscape.__version__)


@styled
def figure_bytes(figure: Figure, ending: str) -> bytes:
    """A figure as "svg" or "png"; the same figure gives the same bytes."""
    stream = io.BytesIO()
    metadata = {"Date": None} if ending == "svg" else {"Software": None}
    figure.savefig(stream, format=ending, dpi=150, metadata=metadata)
    return stream.getvalue()


def _draw(picture: Picture) -> Drawn:
    # An image, not inline SVG: two figures on one page must not share the names of their parts.
    encoded = base64.b64encode(figure_bytes(picture.figure, "svg")).decode("ascii")
    width = f"{_REM_PER_INCH * picture.figure.get_figwidth():.1f}rem"
    return Drawn(picture, f"data:image/svg+xml;base64,{encoded}", width)
