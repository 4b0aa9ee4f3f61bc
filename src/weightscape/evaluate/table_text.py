"""A table of text in three dresses: Markdown, plain text, LaTeX.

The first column names the row and stands left, the others stand right. Whatever a cell holds stays inside it: signs
that would end a cell or mean something to the format are escaped, and line breaks become spaces.
"""

from collections.abc import Callable, Sequence

from weightscape.core.checks import require

Row = Sequence[str]

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "_": r"\_",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≥": r"$\geq$",
        "–": "--",
        "…": r"\dots{}",
        "\u2009": r"\,",
    }
)


def markdown_table(header: Row, body: Sequence[Row]) -> str:
    r"""A table in Markdown whose columns stand below each other in the text as well.

    Example:
    >>> print(markdown_table(["method", "nll"], [["a|b", "0.25"]]))
    | method |  nll |
    |:-------|-----:|
    | a\|b   | 0.25 |
    """
    lines, widths = _laid_out(header, body, lambda cell: cell.replace("|", r"\|"))
    rule = "|".join([":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])])
    first, *rest = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([first, f"|{rule}|", *rest])


def text_table(header: Row, body: Sequence[Row]) -> str:
    """A table for a terminal or a log.

    Example:
    >>> print(text_table(["method", "nll"], [["HMC", "0.25"]]))
    method   nll
    ------  ----
    HMC     0.25
    """
    lines, widths = _laid_out(header, body, lambda cell: cell)
    first, *rest = ["  ".join(line).rstrip() for line in lines]
    return "\n".join([first, "  ".join("-" * width for width in widths), *rest])


def latex_table(header: Row, body: Sequence[Row]) -> str:
    r"""A `tabular` that needs no package.

    Example:
    >>> print(latex_table(["method", "nll"], [["a_b", "0.25 ± 0.1"]]))
    \begin{tabular}{lr}
    \hline
    method & nll            \\
    \hline
    a\_b   & 0.25 $\pm$ 0.1 \\
    \hline
    \end{tabular}
    """
    lines, widths = _laid_out(header, body, lambda cell: cell.translate(_LATEX), left=True)
    first, *rest = [f"{' & '.join(line)} \\\\" for line in lines]
    columns = "l" + "r" * (len(widths) - 1)
    top, rule, end = f"\\begin{{tabular}}{{{columns}}}", r"\hline", r"\end{tabular}"
    return "\n".join([top, rule, first, rule, *rest, rule, end])


def _laid_out(
    header: Row, body: Sequence[Row], escape: Callable[[str], str], *, left: bool = False
) -> tuple[list[list[str]], list[int]]:
    """The cells of all lines, the header first, padded to the widths of their columns, and these widths."""
    lengths = sorted({len(row) for row in (header, *body)})
    remedy = "Give every row one cell for each column."
    require(len(lengths) == 1, "Rows of a table must be as long as its header", f"lengths {lengths}", remedy)
    lines = [[escape(" ".join(cell.splitlines())) for cell in row] for row in (header, *body)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    place = lambda i, cell: cell.ljust(widths[i]) if left or i == 0 else cell.rjust(widths[i])
    return [[place(i, cell) for i, cell in enumerate(line)] for line in lines], widths
