"""Layers written a second time, in plain loops over places with numpy's arithmetic."""

import numpy as np


def convolve(h, kernel, bias, *, padding, stride=1):
    """A correlation over two axes: a sum over the places of the kernel of shifted and strided images."""
    height, width = kernel.shape[:2]
    if padding == "same":
        h = np.pad(h, [(0, 0), _pads(h.shape[1], height, stride), _pads(h.shape[2], width, stride), (0, 0)])
    rows, columns = (h.shape[1] - height) // stride + 1, (h.shape[2] - width) // stride + 1
    total = 0.0
    for i in range(height):
        for j in range(width):
            patch = h[:, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
            total = total + patch @ kernel[i, j]
    return total + bias


def pool(h, window, summary):
    """`summary` (np.mean or np.max) of each window of an image, in loops."""
    rows, columns = h.shape[1] // window, h.shape[2] // window
    made = np.empty((h.shape[0], rows, columns, h.shape[3]))
    for i in range(rows):
        for j in range(columns):
            patch = h[:, i * window : (i + 1) * window, j * window : (j + 1) * window]
            made[:, i, j] = summary(patch, axis=(1, 2))
    return made


def filter_response(x, params):
    """γ x / sqrt(mean of squares over places + 1e-6) + β, then the larger of it and τ."""
    root = np.sqrt((x * x).sum(axis=(1, 2)) / (x.shape[1] * x.shape[2]) + 1e-6)
    y = params["scale"] * x / root[:, None, None, :] + params["shift"]
    return np.where(y > params["threshold"], y, params["threshold"])


def _pads(size, kernel, stride):
    """Zeros before and after, for ceil(size / stride) places."""
    lacking = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return lacking // 2, lacking - lacking // 2
