"""The measurements, the models and the picture of `two_uncertainties`."""
