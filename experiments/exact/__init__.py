"""Posteriors, references and flows of `exact_posterior`."""
