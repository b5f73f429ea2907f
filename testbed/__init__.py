"""Routing on Ethernet fabrics that contain loops: plan, prove, build, measure."""

__version__ = "0.1.0"
