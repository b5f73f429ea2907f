"""Readers of schedules of messages, one a format; `formats` is their table."""
