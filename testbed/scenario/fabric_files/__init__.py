"""Readers of files that describe a fabric, one a format; `formats` is their table."""
