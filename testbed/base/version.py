"""The version of the program, the newest release in CHANGELOG.md."""

__version__ = "1.0.0"
