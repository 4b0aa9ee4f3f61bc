"""The symmetry of a multilayer perceptron, written down by hand."""

from weightscape.core.layout import Layout
from weightscape.symmetry import Group, LeafFactors, Member, Symmetry


def mlp_symmetry(params, scaling=False, sign=False):
    """Of `MLP(hidden, bias=True)`: scaling for ReLU, sign for tanh."""
    hidden = [params[f"layer{i}"]["weight"].shape[1] for i in range(len(params) - 1)]
    e = lambda value: {"scale_exponents": (value,) * scaling, "sign_exponents": (abs(value),) * sign}
    groups = []
    for i, size in enumerate(hidden):
        where = tuple(range(size))
        groups.append(
            Group(
                f"layer{i}",
                size,
                (
                    Member(f"layer{i}/bias", 0, where, produces=True, **e(1)),
                    Member(f"layer{i}/weight", 1, where, produces=True, **e(1)),
                    Member(f"layer{i + 1}/weight", 0, where, consumes=True, **e(-1)),
                ),
            )
        )
    leaves = []
    for i in range(len(params)):
        outgoing = ((i, 0),) if i < len(hidden) else ()
        into = ((i - 1, 2),) if i else ()
        bias, weight = params[f"layer{i}"]["bias"], params[f"layer{i}"]["weight"]
        leaves.append(LeafFactors(f"layer{i}/bias", bias.shape, (outgoing,)))
        leaves.append(LeafFactors(f"layer{i}/weight", weight.shape, (into, ((i, 1),) if i < len(hidden) else ())))
    return Symmetry(tuple(groups), tuple(leaves), Layout.of(params))
