"""Errors on the command line: one line for what the user can mend, and a trace for what is our fault."""


class Stopped(Exception):  # noqa: N818  nothing went wrong
    """The user stopped the command; the message says what is kept and where."""


def one_line(error: BaseException) -> str:
    """An error's message on a single line."""
    return " ".join(str(error).split()) or type(error).__name__
