"""Links switched off and on by what the traffic needs: the choice, its power, and the change of running switches."""
