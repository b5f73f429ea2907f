"""The picture of README and the site's first page, from the folder of one run that passed; needs Chromium.

python -m benchmarks.front_picture results/<folder> docs/images/torus4x4.png
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.base.model import VlanPlan
from testbed.experiments.report.charts import load_charts
from testbed.experiments.report.drawing import draw_topology, draw_vlans, link_use
from testbed.results.read_run import load_run

_WIDTH, _HEIGHT = 1480, 975
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 12px; background: #fff; font: 14px sans-serif; display: grid; grid-template-columns: 40fr 56fr; gap: 12px 24px }}
h2 {{ font-size: 17px; margin: 4px 0 }} svg {{ width: 100%; height: auto }}
section:last-child {{ grid-column: 1 / 3 }} section:last-child svg {{ height: 380px }}
</style>
<section><h2>Link utilisation during the MPI job</h2>{use}</section>
<section><h2>The {count} VLANs: one tree each, the hosts with its PVID marked</h2>{vlans}</section>
<section><h2>TCP goodput of simultaneous flows: measured beside predicted</h2>{flows}</section>"""  # noqa: E501


def main() -> None:
    """Draw it.

    Raises:
        SystemExit: the run has not passed, or lacks what is drawn.
    """
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    run, file = load_run(Path(sys.argv[1])), Path(sys.argv[2])
    if run.manifest.get("verdict") != "pass":
        raise SystemExit(f"{run.path}: has not passed, so its figures are not for a first page")
    mpi = [sample for sample in run.samples if sample.labels.get("kind") == "mpi"]
    tcp = [sample for sample in run.samples if sample.labels.get("protocol") == "tcp"]
    topology, vlans = run.plan.topology, run.plan.vlans
    if not mpi or not tcp or not isinstance(vlans, VlanPlan):
        raise SystemExit(f"{run.path}: has no load by MPI, none by TCP, or no VLAN that is a tree")
    page = _PAGE.format(
        use=draw_topology(topology, "use", link_use(topology, mpi)),
        count=vlans.vlan_count,
        vlans=draw_vlans(topology, vlans, "vlans"),
        flows=load_charts(tcp, "flows")[0].svg,
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page)
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        size, shot = f"--window-size={_WIDTH},{_HEIGHT}", f"--screenshot={file.absolute()}"
        subprocess.run(["chromium", *options, size, shot, source.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
