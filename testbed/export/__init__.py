"""Plans for real switches: files in the words of a switch, and the way back from files to a comparison."""

from testbed.export.export import DIALECTS, Export, Options, export_plan
from testbed.export.reread import Comparison, compare_files

__all__ = ["DIALECTS", "Comparison", "Export", "Options", "compare_files", "export_plan"]
