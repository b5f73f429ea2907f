"""Links switched off and on by what the traffic needs: the choice, its power, and the change of running switches."""

WATCHED = 5.0  # s of traffic by which links of a running lab are chosen
