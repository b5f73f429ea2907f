"""`python -m testbed` is the console script `testbed`, but that Python itself first looks in the current folder.

That is taken back here; what has been imported until then, Python's own modules for `-m` and `testbed` itself, was
looked for there. Where the folder is not one's own, the console script is the way, or `python -I -m testbed`.
"""

from testbed.base.python_isolation import isolate

isolate()

from testbed.ui.cli import main  # noqa: E402 - only now

if __name__ == "__main__":
    main()
