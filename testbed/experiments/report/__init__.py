"""What a run found, as a self-contained page and as a table. Only making a page imports matplotlib."""

from testbed.experiments.report.html import render_report
from testbed.experiments.report.sample_table import ResultRow, result_rows, rich_table

__all__ = ["ResultRow", "render_report", "result_rows", "rich_table"]
