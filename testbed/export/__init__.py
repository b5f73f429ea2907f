"""Plans for real switches: files in a switch's own syntax, and the way back from files to a comparison."""

from testbed.export.compare import Comparison, compare_files
from testbed.export.export import DIALECTS, Export, Options, export_plan

__all__ = ["DIALECTS", "Comparison", "Export", "Options", "compare_files", "export_plan"]
