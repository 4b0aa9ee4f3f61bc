"""Kernels that respect p4, the group of translations and rotations by 90° of the plane.

With R the rotation by 90° and ∗ a correlation with padding that is the same on all sides,

    lifting:  F_r = x ∗ R^r k                           from an image to a map for each rotation r = 0, 1, 2, 3
    group:    G_r = Σ_s F_s ∗ R^r k_{(s − r) mod 4}     from such maps to such maps

Rotating the input rotates every map and moves it on by one: F_r[R x] = R F_{r−1}[x], and likewise for G. Both are plain
correlations whose large kernel holds rotated copies of a small one.

Reference: Cohen & Welling (2016), Group Equivariant Convolutional Networks, equations 10 and 11, section 7.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

NUM_ROTATIONS = 4


def lifting_kernel(kernel: Float[Array, "side side input channel"]) -> Float[Array, "side side input rotation channel"]:
    """R^r k for each r: the kernel of a lifting correlation."""
    return jnp.stack([jnp.rot90(kernel, r) for r in range(NUM_ROTATIONS)], axis=-2)


def group_kernel(
    kernel: Float[Array, "side side rotation input channel"],
) -> Float[Array, "side side rotation input rotation channel"]:
    """R^r k_{(s − r) mod 4} for each s and r: the kernel of a group correlation."""
    turned = [jnp.roll(jnp.rot90(kernel, r), r, axis=2) for r in range(NUM_ROTATIONS)]
    return jnp.stack(turned, axis=-2)


def rotate_maps(
    maps: Float[Array, "point height width rotation channel"],
) -> Float[Array, "point width height rotation channel"]:
    """What rotating the input by 90° does to maps: each is rotated, and moved on by one."""
    return jnp.roll(jnp.rot90(maps, axes=(1, 2)), 1, axis=3)
