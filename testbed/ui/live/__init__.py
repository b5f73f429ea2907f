"""The live page: a running lab, or a finished run, looked at in a browser.

`guard` keeps others out, and `server` answers; `source` reads a lab, `replay` a result folder; `hub` gives each viewer
the newest reading and no backlog. The page itself is the `.html`, `.css` and `.js` beside them.
"""
