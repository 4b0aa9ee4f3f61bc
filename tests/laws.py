"""The tables of objects and what every one of them must obey. Two lines enrol a new object in all its laws."""

import numpy as np
from scipy import stats

import weightscape as ws

# Continuous priors over a tree of two weights {"a": (), "b": ()} or, where they need one, of another shape.
PAIR = {"a": np.zeros(()), "b": np.zeros(())}
COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.8]])
PRIORS = {
    "normal": ws.priors.Normal(scale=0.7),
    "normal_by_leaf": ws.priors.Normal({"a": 0.5, "b": 1.5}),
    "fan_in_normal": ws.priors.FanInNormal(scale=2.0, bias_scale=0.5),
    "full_normal": ws.priors.FullNormal(COVARIANCE),
    "low_rank_normal": ws.priors.LowRankNormal(np.array([[0.8], [-0.5]]), (0.3, 0.6)),
    "laplace": ws.priors.Laplace(0.4),
    "student_t": ws.priors.StudentT(3.0, 0.5),
    "augmented_student_t": ws.priors.augmented_student_t(3.0, 0.5),
    "scale_mixture": ws.priors.ScaleMixture((1.0, 0.1), (0.3, 0.7)),
    "hierarchical": ws.priors.Hierarchical(ws.priors.HalfNormal(0.8)),
    "hierarchical_shared": ws.priors.Hierarchical(ws.priors.Gamma(2.0, 2.0), shared=True),
    "hierarchical_centred": ws.priors.Hierarchical(ws.priors.LogNormal(-0.5, 0.5), shared=True, centred=True),
    "horseshoe": ws.priors.Horseshoe(0.5),
    "by_path": ws.priors.ByPath({"a": ws.priors.Laplace(0.4), "*": ws.priors.Hierarchical(ws.priors.HalfNormal(1.0))}),
}

# Densities over positive numbers, with scipy's distribution.
SCALES = {
    "gamma": (ws.priors.Gamma(2.5, 2.0), stats.gamma(2.5, scale=0.5)),
    "gamma_peaked_at_zero": (ws.priors.Gamma(0.5, 1.0), stats.gamma(0.5)),
    "inverse_gamma": (ws.priors.InverseGamma(3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
    "half_normal": (ws.priors.HalfNormal(0.7), stats.halfnorm(scale=0.7)),
    "half_cauchy": (ws.priors.HalfCauchy(0.7), stats.halfcauchy(scale=0.7)),
    "log_normal": (ws.priors.LogNormal(0.3, 0.6), stats.lognorm(0.6, scale=np.exp(0.3))),
}

# Likelihoods with outputs at which to test them, and their own parameters.
REGRESSION_LIKELIHOODS = {
    "gaussian": (ws.likelihoods.Gaussian(0.625), np.array([[0.3], [-1.2]]), {}),
    "gaussian_inferred": (
        ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0)),
        np.array([[0.3], [-1.2]]),
        {"scale": 0.4},
    ),
    "student_t": (ws.likelihoods.StudentT(4.0, 0.5), np.array([[0.3], [-1.2]]), {}),
    "heteroscedastic": (ws.likelihoods.HeteroscedasticGaussian(), np.array([[0.3, -0.5], [-1.2, 0.4]]), {}),
}
CLASSIFICATION_LIKELIHOODS = {
    "categorical": (ws.likelihoods.Categorical(num_classes=3), np.array([[0.3, -1.0, 2.0], [0.0, 0.5, -0.5]])),
    "bernoulli": (ws.likelihoods.Bernoulli(), np.array([[0.3], [-1.2]])),
}
