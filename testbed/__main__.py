"""`python -m testbed` is the same as the console script `testbed`."""

from testbed.cli import main

if __name__ == "__main__":
    main()
