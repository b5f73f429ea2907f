"""Everything a run does, from a proved plan to its result folder."""

from testbed.called import called

called(__name__)
