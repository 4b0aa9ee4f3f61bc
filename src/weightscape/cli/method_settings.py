"""Several methods on one command line: their names, and settings that say whose they are."""

from collections.abc import Iterable

from weightscape.core.checks import require, require_known


def listed(option: str, text: str) -> tuple[str, ...]:
    """Names separated by commas, each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"`{option}` must name each once", f"{', '.join(twice)} twice", "Leave one out.")
    return tuple(names)


def settings_by_method(settings: Iterable[str], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Texts METHOD.NAME=VALUE as texts NAME=VALUE by method; a method that is not among `names` is an error."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for text in settings:
        name, _, rest = text.partition(".")
        require_known("The method of `--set METHOD.NAME=VALUE`", name, found)
        found[name].append(rest)
    return {name: tuple(each) for name, each in found.items()}
