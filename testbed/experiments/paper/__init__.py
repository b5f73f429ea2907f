"""The papers' published numbers beside ours: tables as data, runners, and a page (docs/scoreboard.md)."""
