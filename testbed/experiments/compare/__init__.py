"""Several runs beside each other: rows relative to a baseline, a table, figures for papers."""

from testbed.experiments.compare.comparison import Comparison, compare
from testbed.experiments.compare.comparison_rows import ComparedRow

__all__ = ["ComparedRow", "Comparison", "compare"]
