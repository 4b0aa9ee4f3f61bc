"""Stages from power 0 to power 1, with progress."""

from collections.abc import Callable
from typing import Any

from weightscape.core import Progress


def climbed(label: str, course: Any, stage: Callable[..., Any], progress: Progress) -> Any:
    """The course at power 1; where the time is up, after one stage more.

    - `stage`: `stage(course, is_last=...)` takes a course to its next power, and the last time to the end.
    """
    progress.start(label, 100)
    try:
        while course.powers[-1] < 1:
            course = stage(course, is_last=progress.seconds_left() <= 0)
            facts = {"power": course.powers[-1], "acceptance": course.acceptances[-1]}
            progress.advance(int(100 * course.powers[-1]), facts)
    finally:
        progress.finish()
    return course
