"""Plans for real switches: files in a switch's own syntax, and the way back from files to a comparison."""

from testbed.devices.check import CheckOptions, Comparison, check_files, compare_files
from testbed.devices.export import DIALECTS, Export, Options, export_plan

__all__ = [
    "DIALECTS", "CheckOptions", "Comparison", "Export", "Options", "check_files", "compare_files", "export_plan",
]  # fmt: skip
