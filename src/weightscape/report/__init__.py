"""Reports: figures, and one page that says what a run found."""

from weightscape.report.bands import Bands, Scatter, bands, plot_bands
from weightscape.report.barrier import plot_barriers
from weightscape.report.calibration import plot_coverage, plot_reliability
from weightscape.report.calibrations import plot_coverages, plot_reliabilities
from weightscape.report.chains import convergence_table, health_table
from weightscape.report.class_map import plane, plot_class_map, plot_class_maps
from weightscape.report.compared import (
    Entry,
    Reference,
    brief_table,
    compared_finding,
    compared_table,
    nearness_name,
    rhat_note,
)
from weightscape.report.convergence import plot_convergence, plot_lppd
from weightscape.report.cost import Cost, Measure, plot_cost
from weightscape.report.doubt import plot_doubt
from weightscape.report.evidences import Candidate, evidence_table, plot_evidence
from weightscape.report.flow_evidence import plot_log_evidences
from weightscape.report.flow_log_weights import plot_log_weights
from weightscape.report.flow_path import functions_on_the_way, plot_path
from weightscape.report.flow_route import Route, route_through
from weightscape.report.flow_training import plot_flow_training
from weightscape.report.flow_weights import plot_weights_beside
from weightscape.report.page import render_page
from weightscape.report.parity import plot_parity
from weightscape.report.prior_gallery import Gallery, draw_gallery
from weightscape.report.pruning import plot_pruning, pruning_table
from weightscape.report.relevance import plot_relevance
from weightscape.report.report import Picture, Report, Table
from weightscape.report.run import Fitted, line, report_run, score_table
from weightscape.report.section import plot_section
from weightscape.report.spread import plot_marginals, plot_spread
from weightscape.report.symmetry import plot_symmetry, symmetry_table
from weightscape.report.trace import plot_trace
from weightscape.report.unit_paths import UnitPaths, plot_unit_paths
from weightscape.report.weights import plot_weights
from weightscape.report.write import write_report

__all__ = [
    "Bands",
    "Candidate",
    "Cost",
    "Entry",
    "Fitted",
    "Gallery",
    "Measure",
    "Picture",
    "Reference",
    "Report",
    "Route",
    "Scatter",
    "Table",
    "UnitPaths",
    "bands",
    "brief_table",
    "compared_finding",
    "compared_table",
    "convergence_table",
    "draw_gallery",
    "evidence_table",
    "functions_on_the_way",
    "health_table",
    "line",
    "nearness_name",
    "plane",
    "plot_bands",
    "plot_barriers",
    "plot_class_map",
    "plot_class_maps",
    "plot_convergence",
    "plot_cost",
    "plot_coverage",
    "plot_coverages",
    "plot_doubt",
    "plot_evidence",
    "plot_flow_training",
    "plot_log_evidences",
    "plot_log_weights",
    "plot_lppd",
    "plot_marginals",
    "plot_parity",
    "plot_path",
    "plot_pruning",
    "plot_relevance",
    "plot_reliabilities",
    "plot_reliability",
    "plot_section",
    "plot_spread",
    "plot_symmetry",
    "plot_trace",
    "plot_unit_paths",
    "plot_weights",
    "plot_weights_beside",
    "pruning_table",
    "render_page",
    "report_run",
    "rhat_note",
    "route_through",
    "score_table",
    "symmetry_table",
    "write_report",
]
