"""Straight-through matching: the equivalent network whose midpoint with the reference has the lowest loss.

    g = argmin_g L(½ (reference + g θ))

A free copy w of the weights starts at the reference. At each step it is projected onto the equivalent networks by
weight matching, g θ ≈ w, and moved down the gradient of the loss at the midpoint, as if the projection were not there
(Ainsworth, Hayase and Srinivasa 2023, section 3.3). Of all elements on the way the one of lowest loss is kept.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from weightscape.core import tree
from weightscape.core.checks import require_count, require_positive
from weightscape.core.numbers import number
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.geometry.match import Matched, Matching, Task
from weightscape.geometry.weight_matching import WeightMatching
from weightscape.symmetry import Element, Symmetry


class StraightThrough(Matching):
    """Gradient steps on a free copy of the weights, each projected by weight matching.

    - `loss`: L, from a tree of the symmetry's layout to a number that is smaller when better.
    - `num_steps`: how many gradient steps there are.  `learning_rate`: of Adam.
    - `projection`: the weight matching of each step.

    The loss at the midpoint is never above that of `projection` alone. It gives no promise on the distance. Networks
    are matched one after the other.
    """

    loss: Callable[[Tree], Scalar] = eqx.field(static=True)
    num_steps: int = eqx.field(static=True, default=100)
    learning_rate: Scalar = eqx.field(default=1e-2, converter=number)
    projection: WeightMatching = WeightMatching()

    def __check_init__(self):
        require_count("`num_steps` of StraightThrough", self.num_steps)
        require_positive("`learning_rate` of StraightThrough", self.learning_rate)

    def find(self, key: PRNGKey, task: Task) -> Matched:
        elements = []
        for i in range(task.num_networks):
            params = jax.tree.map(lambda leaf, i=i: leaf[i], task.params)
            elements.append(self._find_one(key, task.symmetry, params, task.reference))
        return task.matched(tree.stack(elements), jnp.full(task.num_networks, self.num_steps))

    def _find_one(self, key: PRNGKey, symmetry: Symmetry, params: Tree, reference: Tree) -> Element:
        free, state = reference, optax.adam(self.learning_rate).init(reference)
        best, best_loss = symmetry.identity(), np.inf
        for step in range(self.num_steps):
            # The first projection takes the key itself, so that it is the one that `projection` alone would make.
            key_step = jax.random.fold_in(key, step) if step else key
            element = self.projection.match(key_step, symmetry, params, free).element
            loss, free, state = _gradient_step(self, symmetry.apply(params, element), reference, free, state)
            if float(loss) < best_loss:
                best, best_loss = element, float(loss)
        return best


@eqx.filter_jit
def _gradient_step(
    matching: StraightThrough, moved: Tree, reference: Tree, free: Tree, state: optax.OptState
) -> tuple[Scalar, Tree, optax.OptState]:
    """The loss at the midpoint, and the free copy after one step."""
    at_midpoint = lambda weights: matching.loss(tree.scale(0.5, tree.add(reference, weights)))
    loss, gradient = jax.value_and_grad(at_midpoint)(moved)
    updates, state = optax.adam(matching.learning_rate).update(gradient, state, free)
    return loss, optax.apply_updates(free, updates), state
