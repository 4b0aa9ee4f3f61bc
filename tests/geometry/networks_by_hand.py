"""Symmetries written down by hand where units meet themselves or two groups meet: a recurrence, and attention."""

import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core.layout import Layout
from weightscape.symmetry import Group, LeafFactors, Member, Symmetry


def _exponents(value: int, scaling: bool, sign: bool) -> dict:
    return {"scale_exponents": (value,) * scaling, "sign_exponents": (abs(value),) * sign}


def _filled(shapes: dict[str, tuple[int, ...]]) -> dict[str, jax.Array]:
    generator = np.random.default_rng(1)
    return {name: jnp.asarray(generator.normal(size=shape) / 2) for name, shape in shapes.items()}


def recurrence(*, size: int = 5, scaling: bool = False, sign: bool = False):
    """h ← φ(x W + h U + b), outputs = h V. Returns parameters, symmetry and the function of them."""
    shapes = {"bias": (size,), "input": (3, size), "output": (size, 2), "recurrent": (size, size)}
    params = _filled(shapes)
    e = lambda value: _exponents(value, scaling, sign)
    where = tuple(range(size))
    members = (
        Member("recurrent", 0, where, consumes=True, **e(-1)),
        Member("recurrent", 1, where, produces=True, **e(1)),
        Member("bias", 0, where, produces=True, **e(1)),
        Member("input", 1, where, produces=True, **e(1)),
        Member("output", 0, where, consumes=True, **e(-1)),
    )
    leaves = (
        LeafFactors("bias", (size,), (((0, 2),),)),
        LeafFactors("input", (3, size), ((), ((0, 3),))),
        LeafFactors("output", (size, 2), (((0, 4),), ())),
        LeafFactors("recurrent", (size, size), (((0, 0),), ((0, 1),))),
    )
    symmetry = Symmetry((Group("hidden", size, members),), leaves, Layout.of(params))
    activation = jax.nn.relu if scaling else jnp.tanh

    x = jnp.asarray(np.random.default_rng(2).normal(size=(4, 3)))

    def apply(params):
        h = jnp.zeros((len(x), size))
        for _ in range(3):
            h = activation(x @ params["input"] + h @ params["recurrent"] + params["bias"][None])
        return h @ params["output"]

    return params, symmetry, apply


def attention(*, heads: int = 3, entries: int = 4, scaling: bool = True, sign: bool = True):
    """Queries and keys of shape (model, heads, entries), whose products over entries are the function.

    Heads may be permuted with `mix`; heads and entries may both be rescaled and flipped, in q and inversely in k.
    """
    params = _filled({"keys": (5, heads, entries), "mix": (heads,), "queries": (5, heads, entries)})
    e = lambda value: _exponents(value, scaling, sign)
    head, entry = tuple(range(heads)), tuple(range(entries))
    groups = (
        Group(
            "heads",
            heads,
            (Member("queries", 1, head, **e(1)), Member("keys", 1, head, **e(-1)), Member("mix", 0, head, **e(0))),
        ),
        Group("entries", entries, (Member("queries", 2, entry, **e(1)), Member("keys", 2, entry, **e(-1)))),
    )
    leaves = (
        LeafFactors("keys", (5, heads, entries), ((), ((0, 1),), ((1, 1),))),
        LeafFactors("mix", (heads,), (((0, 2),),)),
        LeafFactors("queries", (5, heads, entries), ((), ((0, 0),), ((1, 0),))),
    )
    symmetry = Symmetry(groups, leaves, Layout.of(params))

    x = jnp.asarray(np.random.default_rng(2).normal(size=(4, 5)))

    def apply(params):
        queries, keys = (jnp.einsum("pm,mhe->phe", x, params[name]) for name in ("queries", "keys"))
        return jnp.einsum("phe,qhe,h->pq", queries, keys, params["mix"])

    return params, symmetry, apply
