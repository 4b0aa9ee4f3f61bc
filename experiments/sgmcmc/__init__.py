"""The posterior, the methods and the measures of `sgmcmc_table`."""
