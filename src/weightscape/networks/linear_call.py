"""What a handler sees of a linear layer while a network runs: its weights, its inputs, and the operation itself.

    z[p, s, o] = Σ_i h[p, s, i] W[i, o] + b[o]        (point p, position s, input i, output o)

Every array is in canonical form, whatever the program does with its axes.
"""

import dataclasses
from collections.abc import Callable

from jaxtyping import Array, Float

from weightscape.networks.linear_layer import LinearLayer, leaf_from_canonical


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One linear layer at work.

    - `layer`: what is known of it.
    - `weight`: W.  `bias`: b, or None.
    - `incoming`: the array that comes in; the inputs of a dense layer, the channels at each place of a convolution.
    - `operation`: the program's own product of a leaf and an incoming array, both as the program keeps them.
    """

    layer: LinearLayer
    weight: Float[Array, "input output"]
    bias: Float[Array, " output"] | None
    incoming: Float[Array, "point place channel"]
    operation: Callable[[Array, Array], Array]

    def inputs(self) -> Float[Array, "point position input"]:
        """h; of a convolution the patches, which take kernel-size times the memory of `incoming`."""
        window, layout = self.layer.window, self.layer.incoming
        if window is None:
            return self.incoming
        return window.patches(self.incoming.reshape(-1, *layout.positions, layout.num_units))

    def outputs(self) -> Float[Array, "point position output"]:
        """z, as the network itself has it."""
        return self.linear(self.weight, self.bias)

    def linear(
        self, weight: Float[Array, "input output"], bias: Float[Array, " output"] | None = None
    ) -> Float[Array, "point position output"]:
        """h W + b with other W and b by the program's own operation; a convolution makes no patches."""
        leaf = leaf_from_canonical(self.layer, weight.astype(self.weight.dtype))
        z = self.layer.outgoing.flatten(self.operation(leaf, self.layer.incoming.unflatten(self.incoming)))
        return z if bias is None else z + bias.astype(z.dtype)[None, None, :]

    def transformed(self, function: Callable[[Array], Array]) -> "LayerCall":
        """The same layer on function(incoming), of the same shape.

        Padding stays zero, so let function(0) be 0 if it shall act on every input. For independent weights
        `call.transformed(jnp.square).linear(variance)` is the variance of z.
        """
        changed = function(self.incoming).astype(self.incoming.dtype)
        return dataclasses.replace(self, incoming=changed)


Handler = Callable[[LayerCall], Float[Array, "point position output"]]
"""Gives the outputs of a layer in place of the network's own `call.outputs()`."""
