"""The papers' published numbers and those obtained here: tables as data, runners, and a page (docs/scoreboard.md)."""
