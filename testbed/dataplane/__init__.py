"""What switches, links and TCP do to frames: one model for prediction, simulation and modelled switches."""
