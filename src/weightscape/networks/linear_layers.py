"""The dense and convolution layers of any network, found in the trace of its `apply`.

    z[p, s, o] = Σ_i h[p, s, i] W[i, o] + b[o]        (point p, position s, input i, output o)

A leaf is the weight W of a layer where the whole program uses it once, in a product with an array of points, and before
that does no more to it than move its axes. A leaf is the bias b where it is used once and added to that product. For
such a layer ∂f/∂W[i, o] = Σ_{p, s} h[p, s, i] ∂f/∂z[p, s, o] holds exactly, which Kronecker factors, local
reparameterisation and last-layer methods rest on. Leaves of which this is not certain are left out and named.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.types import Tree
from weightscape.networks.linear_call import Handler, LayerCall
from weightscape.networks.linear_layer import LinearLayer, canonical_bias, canonical_weight
from weightscape.networks.linear_search import Found, Site, search
from weightscape.networks.network import Network
from weightscape.networks.traced_program import Program


class LinearLayers(eqx.Module):
    """The linear layers of a network. Made by `find_linear_layers`.

    - `network`: the network.
    - `layers`: its layers in the order of execution.
    - `left_out`: (path, reason) of every leaf that belongs to none of them.
    - `last`: the layer whose outputs, with its bias, are the outputs of the network; None where there is none.
    """

    network: Network
    layers: tuple[LinearLayer, ...] = eqx.field(static=True)
    left_out: tuple[tuple[str, str], ...] = eqx.field(static=True)
    last: LinearLayer | None = eqx.field(static=True)

    @property
    def others(self) -> dict[str, str]:
        """Paths of the leaves that belong to no layer, and why."""
        return dict(self.left_out)

    def apply(self, params: Tree, x: Float[Array, "point ..."], handler: Handler) -> Float[Array, "point output"]:
        """`network.apply(params, x)` with `handler(call)` for the outputs of each layer, bias included.

        The handler is called once a layer while this runs, in the order of execution, so it may also note down what it
        sees. With `lambda call: call.outputs()` the outputs are those of the network.
        """
        found = search(self.network.apply, params, x)
        asked = "`params` and `x` must be like those of `find_linear_layers` but for the number of points"
        came = f"shapes for which the layers are not the {len(self.layers)} found then"
        require(found.layers == self.layers, asked, came, "Call `find_linear_layers` for these shapes.")
        return _run(found, tree.named_leaves(params), x, handler)


def find_linear_layers(network: Network, params_like: Tree, x_like: Any) -> LinearLayers:
    """The linear layers of a network, from shapes alone.

    - `params_like`, `x_like`: arrays, or their shapes as `jax.ShapeDtypeStruct`. The number of points is free: `apply`
      takes any other.

    Example:
    >>> from weightscape.networks import MLP
    >>> import jax, jax.numpy as jnp
    >>> network, x = MLP(hidden=(5,), outputs=2), jnp.ones((7, 4))
    >>> params = network.init(jax.random.key(0), x)
    >>> found = find_linear_layers(network, params, x)
    >>> [(layer.weight, layer.num_inputs, layer.num_outputs) for layer in found.layers]
    [('layer0/weight', 4, 5), ('layer1/weight', 5, 2)]
    >>> halved = found.apply(params, x, lambda call: call.linear(call.weight / 2, call.bias))
    """
    found = search(network.apply, params_like, x_like)
    return LinearLayers(network, found.layers, found.left_out, found.last)


def _run(found: Found, leaves: Mapping[str, Array], x: Array, handler: Handler) -> Array:
    """The program step by step, with the handler in place of each layer."""
    program = found.program
    values = {**program.constants, program.x: jnp.asarray(x)}
    values |= {variable: jnp.asarray(leaves[path]) for path, variable in program.parameters.items()}
    sites = {site.product: site for site in found.sites}
    skipped = {i for site in found.sites for i in (*site.weight_moves, *site.output_moves, *site.bias_steps)}
    for i, step in enumerate(program.steps):
        if i in sites:
            values[sites[i].result] = _handled(program, sites[i], values, handler)
        elif i not in skipped:
            values.update(zip(step.outputs, step.run(*(values[v] for v in step.inputs)), strict=True))
    return values[program.result]


def _handled(program: Program, site: Site, values: Mapping[int, Any], handler: Handler) -> Array:
    """The handler's outputs of one layer, as the program keeps them."""
    call = _layer_call(program, site, values)
    made = jnp.asarray(handler(call))
    expected = (call.incoming.shape[0], site.layer.num_positions, site.layer.num_outputs)
    asked = f"A handler must return outputs of shape {expected} for {site.layer.weight}"
    require(made.shape == expected, asked, made.shape, "Return a number for each point, position and output.")
    return _through(program, site.output_moves, site.layer.outgoing.unflatten(made.astype(_type(program, site))))


def _layer_call(program: Program, site: Site, values: Mapping[int, Any]) -> LayerCall:
    layer, product = site.layer, program.steps[site.product]
    weight = canonical_weight(layer, values[program.parameters[layer.weight]])
    bias = None if layer.bias is None else canonical_bias(layer, values[program.parameters[layer.bias]])

    def operation(leaf: Array, incoming: Array) -> Array:
        operands = [incoming, _through(program, site.weight_moves, leaf)]
        (made,) = product.run(*(operands if site.side == 1 else operands[::-1]))
        return made

    incoming = values[product.inputs[1 - site.side]]
    return LayerCall(layer, weight, bias, layer.incoming.flatten(incoming), operation)


def _through(program: Program, moves: tuple[int, ...], value: Array) -> Array:
    """The value after these steps, each of which takes one array to one."""
    for i in moves:
        (value,) = program.steps[i].run(value)
    return value


def _type(program: Program, site: Site) -> np.dtype:
    return program.types[site.result].dtype
