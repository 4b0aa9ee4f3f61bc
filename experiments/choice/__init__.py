"""Which width and which prior the data prefer: the problem, and its evidence in closed form but for a few integrals."""
