"""How many sign patterns a symmetry has.

Flips of different groups may undo each other: in an attention block, flipping all heads of queries is flipping all
entries of a head. Flips change no weight exactly where, in each group, all units are flipped alike (c_k for the group's
k-th way), and every leaf sees an even number of them:

    Σ_k e_{k,leaf} c_k = 0 mod 2      for every leaf

so the patterns number 2^(Σ n_g K_g − dim{c}).
"""

import math
from collections.abc import Sequence

from weightscape.symmetry.group import Group
from weightscape.symmetry.null_space import null_space


def log_signs(groups: Sequence[Group]) -> float:
    """log of the number of different sign patterns."""
    ways = [(g, k) for g, group in enumerate(groups) for k in range(group.num_signs)]
    by_leaf: dict[str, dict[int, int]] = {}
    for column, (g, k) in enumerate(ways):
        for member in groups[g].members:
            row = by_leaf.setdefault(member.path, {})
            row[column] = row.get(column, 0) + member.sign_exponents[k]
    hidden = len(null_space(list(by_leaf.values()), range(len(ways)), modulus=2)) if ways else 0
    num_flips = sum(group.size * group.num_signs for group in groups)
    return math.log(2) * (num_flips - hidden)
