"""Parts of `thesis_flows`: settings, populations, flows and their judgement, tables."""
