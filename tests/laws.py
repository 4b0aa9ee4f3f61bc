"""The tables of objects and what every one of them must obey. Two lines enrol a new object in all its laws."""

import numpy as np

import weightscape as ws

# Priors over real numbers or positive ones, with the standard deviation of a scalar draw.
PRIORS = {
    "normal": (ws.priors.Normal(scale=0.7), 0.7),
    "fan_in_normal": (ws.priors.FanInNormal(scale=2.0, bias_scale=0.5), 0.5),
    "gamma": (ws.priors.Gamma(2.5, 2.0), np.sqrt(2.5) / 2.0),
    "gamma_peaked_at_zero": (ws.priors.Gamma(0.5, 1.0), np.sqrt(0.5)),
}

# Likelihoods with outputs at which to test them, and their own parameters.
REGRESSION_LIKELIHOODS = {
    "gaussian": (ws.likelihoods.Gaussian(0.625), np.array([[0.3], [-1.2]]), {}),
    "gaussian_inferred": (
        ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0)),
        np.array([[0.3], [-1.2]]),
        {"scale": 0.4},
    ),
    "heteroscedastic": (ws.likelihoods.HeteroscedasticGaussian(), np.array([[0.3, -0.5], [-1.2, 0.4]]), {}),
}
CLASSIFICATION_LIKELIHOODS = {
    "categorical": (ws.likelihoods.Categorical(num_classes=3), np.array([[0.3, -1.0, 2.0], [0.0, 0.5, -0.5]])),
    "bernoulli": (ws.likelihoods.Bernoulli(), np.array([[0.3], [-1.2]])),
}
