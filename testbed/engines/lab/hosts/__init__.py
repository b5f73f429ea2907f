"""Hosts of a lab: namespaces, views of files, shares of processors, programs."""
