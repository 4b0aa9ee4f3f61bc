"""Paths of variables through a program: who uses them, what depends on them, where moves of axes take them."""

import math
from typing import NamedTuple

from weightscape.networks.traced_moves import Origins, moved, origins_of
from weightscape.networks.traced_program import Program, Step

Users = dict[int, list[int]]
"""The indices of the steps that use a variable, with a step as often as it does."""


class Path(NamedTuple):
    """A variable followed through moves of its axes for as long as one step alone uses it.

    - `moves`: indices of those steps.
    - `variable`, `origins`: where they lead, and its axes as axes of the variable that was followed.
    - `user`: index of the step that does something else with it; None where there is not exactly one, with `reason`.
    """

    moves: tuple[int, ...]
    variable: int
    origins: Origins
    user: int | None
    reason: str


def users_of(program: Program) -> Users:
    """The steps that use each variable."""
    users = {}
    for i, step in enumerate(program.steps):
        for variable in step.inputs:
            users.setdefault(variable, []).append(i)
    return users


def follow(program: Program, users: Users, variable: int) -> Path:
    """The path of a variable to the one step that does more with it than move its axes."""
    moves, origins = [], origins_of(program.types[variable].shape)
    while not (reason := _why_no_user(program, users, variable)):
        (user,) = users[variable]
        after = _moved(program, program.steps[user], origins)
        if after is None:
            return Path(tuple(moves), variable, origins, user, "")
        moves.append(user)
        variable, origins = program.steps[user].outputs[0], after
    return Path(tuple(moves), variable, origins, None, reason)


def unmoved(program: Program, variable: int) -> list[int]:
    """The variable, what it is a mere rearrangement of, what that is one of, and so on."""
    makers = {made: step for step in program.steps for made in step.outputs}
    found = [variable]
    while step := makers.get(found[-1]):
        after = _moved(program, step, (None,) * len(program.types[step.inputs[0]].shape)) if step.inputs else None
        if after is None or not alike(program, step.inputs[0], found[-1]):
            break
        found.append(step.inputs[0])
    return found


def dependents(program: Program, variable: int) -> set[int]:
    """The variables that depend on one, itself included."""
    found = {variable}
    for step in program.steps:
        found.update(step.outputs if not found.isdisjoint(step.inputs) else ())
    return found


def alike(program: Program, left: int, right: int) -> bool:
    """Whether two variables hold equally many numbers of the same type."""
    left_type, right_type = program.types[left], program.types[right]
    return math.prod(left_type.shape) == math.prod(right_type.shape) and left_type.dtype == right_type.dtype


def _why_no_user(program: Program, users: Users, variable: int) -> str:
    num_uses = len(users.get(variable, ())) + (variable == program.result)
    if num_uses > 1:
        return "used more than once"
    if variable == program.result:
        return "is itself an output"
    return "" if num_uses else "not used"


def _moved(program: Program, step: Step, origins: Origins) -> Origins | None:
    if len(step.inputs) != 1 or len(step.outputs) != 1:
        return None
    before, after = program.types[step.inputs[0]], program.types[step.outputs[0]]
    return moved(step.name, step.equation.params, before, after, origins)
