"""Groups as a table that a person can read."""

from collections.abc import Sequence

from weightscape.symmetry.group import Group, LeafFactors, Member

_HEADINGS = ("group", "units", "kinds", "members: path, factors with the units in brackets, what is done with them")


def table(groups: Sequence[Group], leaves: Sequence[LeafFactors]) -> list[str]:
    """Lines with the groups, their sizes, kinds and members."""
    if not groups:
        return ["no groups of interchangeable units"]
    sizes = {leaf.path: leaf.sizes for leaf in leaves}
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for group in groups:
        first, *rest = [_described(member, sizes[member.path]) for member in group.members]
        rows.append((group.name, str(group.size), _kinds(group), first))
        rows.extend(("", "", "", other) for other in rest)
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS) - 1)]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]


def _kinds(group: Group) -> str:
    counts = {"permutation": 1, "scaling": group.num_scalings, "sign": group.num_signs}
    return ", ".join(kind if counts[kind] == 1 else f"{kind} ×{counts[kind]}" for kind in group.kinds)


def _described(member: Member, sizes: Sequence[int]) -> str:
    shape = " × ".join(f"[{size}]" if i == member.factor else str(size) for i, size in enumerate(sizes))
    where = f" from {member.positions[0]}" if len(member.positions) < sizes[member.factor] else ""
    powers = [_power(f"s{_below(k, member.scale_exponents)}", e) for k, e in enumerate(member.scale_exponents) if e]
    flips = [f"±{_below(k, member.sign_exponents)}" for k, e in enumerate(member.sign_exponents) if e]
    marks = "".join(f", {mark}" for mark in (*powers, *flips))
    return f"{member.path}: {shape}{where}, {member.role}{marks}"


def _power(name: str, exponent: int) -> str:
    """s, s², 1/s, …"""
    raised = name if abs(exponent) == 1 else f"{name}^{abs(exponent)}"
    return raised if exponent > 0 else f"1/{raised}"


def _below(k: int, ways: Sequence[int]) -> str:
    return "" if len(ways) == 1 else str(k + 1)
