"""Densities beside chains: every parametric method against HMC on one classification and one regression.

    python experiments/densities.py [iris|energy]

Prints a Markdown table: score on the test rows, distance to HMC's predictive, log p(D), and time with compilation.
Predictions are those of `predict_result`: a Laplace approximation predicts by the linearised network, the row "networks
drawn" shows what its draws do in the network itself.
"""

import sys
import time

import jax
import numpy as np

import weightscape as ws
from weightscape.predictive import predict_result

KEY, NUM_DRAWS = jax.random.key(0), 1000
PROBLEMS = {
    "iris": (ws.networks.MLP, {"hidden": (16,)}, lambda: ws.likelihoods.Categorical(3)),
    "energy": (ws.networks.MLP, {"hidden": (16,)}, lambda: ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0))),
}


def methods() -> dict[str, ws.inference.Method]:
    return {
        "HMC": ws.HMC(num_chains=8, num_draws=500, num_warmup=500, num_leapfrog=64),
        "MAP": ws.MAP(),
        "deep ensemble": ws.DeepEnsemble(num_members=10),
        "Laplace, full": ws.Laplace("full"),
        "Laplace, Kronecker": ws.Laplace("kronecker"),
        "Laplace, diagonal": ws.Laplace("diagonal"),
        "Laplace, last layer": ws.Laplace(weights="last_layer"),
        "neural-linear": ws.NeuralLinear(),
        "mean-field VI": ws.MeanFieldVI(),
        "layerwise VI": ws.LayerwiseVI(),
        "flow VI": ws.NormalizingFlowVI(),
        "SWAG": ws.SWAG(),
        "multi-SWAG, 5": ws.SWAG(num_members=5),
    }


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "iris"
    network, options, likelihood = PROBLEMS[name]
    data = ws.data.load(name)
    posterior = ws.Model(network(**options), likelihood(), ws.priors.Normal(1.0)).condition(data.train)
    print(f"{name}, {options['hidden'][0]} hidden tanh units, prior N(0, 1); {jax.__version__}, {jax.devices()}")
    print("| method | NLL | distance to HMC | log p(D), its own | weighed | seconds |\n|---|---|---|---|---|---|")
    reference = None
    for i, (label, method) in enumerate(methods().items()):
        began = time.perf_counter()
        result = method.run(jax.random.fold_in(KEY, i), posterior)
        seconds = time.perf_counter() - began
        predictive = predict_result(KEY, result, data.test.x, num_draws=NUM_DRAWS)
        reference = reference or predictive
        show(label, predictive, reference, data, evidence(result), seconds)
        if label == "Laplace, full":
            drawn = ws.predict(result.sample(KEY, NUM_DRAWS), data.test.x)
            show("  networks drawn", drawn, reference, data, ("", ""), 0.0)


def evidence(result: object) -> tuple[str, str]:
    if isinstance(result, ws.Draws):
        return "–", "–"
    own = "–" if result.estimate is None else str(result.estimate).removeprefix("log p(D) ").removesuffix(" nats")
    if not result.is_proper:
        return own, "–"
    weighed = result.evidence(jax.random.fold_in(KEY, 99), NUM_DRAWS)
    return own, f"{weighed.value:.2f} ± {weighed.standard_error:.2g}" if weighed.is_trusted else "not trusted"


def show(label: str, predictive: ws.Predictive, reference: ws.Predictive, data: ws.Dataset, found, seconds) -> None:
    nll = -float(np.mean(predictive.log_density(data.test.y)))
    if data.task == "classification":
        distance = f"TV {float(ws.total_variation(predictive, reference)):.4f}"
    else:
        gap = (predictive.mean - reference.mean) ** 2 + (predictive.std - reference.std) ** 2
        distance = f"W2 of normals {float(np.sqrt(np.mean(gap))):.3f}"
    print(f"| {label} | {nll:.3f} | {distance} | {found[0]} | {found[1]} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
