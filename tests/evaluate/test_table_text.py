"""Tables of text against tables that were written by hand, with cells that try to break out."""

import re

import pytest

from weightscape.evaluate import Scores, comparison_table
from weightscape.evaluate.table_text import latex_table, markdown_table, text_table

HEADER = ["method", "nll", "note"]
BODY = [["hmc", "0.25 ± 0.03", "–"], ["a|b_c", "1", "50 % of\nrows & {more}"]]


def test_markdown():
    assert markdown_table(HEADER, BODY).splitlines() == [
        "| method |         nll |                  note |",
        "|:-------|------------:|----------------------:|",
        "| hmc    | 0.25 ± 0.03 |                     – |",
        r"| a\|b_c |           1 | 50 % of rows & {more} |",
    ]


def test_plain_text():
    assert text_table(HEADER, BODY).splitlines() == [
        "method          nll                   note",
        "------  -----------  ---------------------",
        "hmc     0.25 ± 0.03                      –",
        "a|b_c             1  50 % of rows & {more}",
    ]


def test_latex():
    lines = [re.sub(" +", " ", line) for line in latex_table(HEADER, BODY).splitlines()]
    assert lines == [
        r"\begin{tabular}{lrr}",
        r"\hline",
        r"method & nll & note \\",
        r"\hline",
        r"hmc & 0.25 $\pm$ 0.03 & -- \\",
        r"a\textbar{}b\_c & 1 & 50 \% of rows \& \{more\} \\",
        r"\hline",
        r"\end{tabular}",
    ]


def test_every_sign_of_latex_is_escaped_once():
    cell = latex_table(["method"], [["\\ { } _ & % $ # ~ ^"]]).splitlines()[4]
    assert cell.startswith(r"\textbackslash{} \{ \} \_ \& \% \$ \# \textasciitilde{} \textasciicircum{} "), cell


def test_a_row_of_another_length_raises():
    with pytest.raises(ValueError, match="as long as its header, got lengths \\[2, 3\\]"):
        text_table(HEADER, [["hmc", "1"]])


def test_errors_stand_beside_scores_that_know_them():
    known = Scores({"accuracy": 0.96667, "nll": 0.1}, {"accuracy": 0.0123})
    assert comparison_table({"HMC": known, "MAP": {"nll": 0.25}}).splitlines()[2:] == [
        "| HMC    | 0.9667 ± 0.012 |  0.1 |",
        "| MAP    |              – | 0.25 |",
    ]
