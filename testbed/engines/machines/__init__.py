"""One fabric over several machines: each builds a part as a lab of its own, and links that are cut become tunnels.

`parts` divides what is to be built, `questions` what the fabric is asked and `answers` puts together what the parts
say: all three are pure. `host` runs on each machine, on a worker of Dask; `fabric` here.
"""
