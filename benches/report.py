"""How long a report of 100 cells of 100,000 flows takes to be made and to be opened: `.venv/bin/python benches/report.py`."""

import csv
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from browser import browser, opened

NETLOOM = ROOT / "target" / "release" / "netloom"
FLOWS, SCHEMES, LOADS, SEEDS = 100_000, 5, 10, 2


def enlarged(flows, factor, rng):
    """The flows of a small run, many times over, with sizes and completion times of their own."""
    flows = flows.take(pa.array(np.arange(FLOWS) % flows.num_rows))
    size = np.exp(rng.normal(10, 2, FLOWS)).astype("uint64") + 1
    idle = size * 40 + 8_000_000
    columns = {
        "bytes": size,
        "ideal_fct_ps": idle,
        "fct_ps": (idle * (1 + rng.exponential(factor, FLOWS))).astype("uint64"),
    }
    for name, values in columns.items():
        place = flows.schema.get_field_index(name)
        flows = flows.set_column(place, flows.schema.field(place), pa.array(values, pa.uint64()))
    return flows


def main():
    """Makes the study, its report, and opens it three times."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        study = [NETLOOM, "study", ROOT / "examples" / "compare.toml", "--out", small]
        subprocess.run(study, check=True, capture_output=True)
        with open(small / "results.csv") as results:
            cell = small / next(csv.DictReader(results))["folder"]
        flows = pq.read_table(cell / "flows.parquet")
        rng = np.random.default_rng(1)
        rows = ["scheme,load,seed,folder"]
        for scheme, load, seed in np.ndindex(SCHEMES, LOADS, SEEDS):
            name = f"cells/{scheme}-{load}-{seed}"
            shutil.copytree(cell, large / name)
            pq.write_table(
                enlarged(flows, 0.3 + 0.2 * scheme + 0.1 * load, rng), large / name / "flows.parquet"
            )
            rows.append(f"s{scheme},0.{load},{seed},{name}")
        (large / "results.csv").write_text("\n".join(rows) + "\n")

        start = time.monotonic()
        subprocess.run([NETLOOM, "report", large], check=True, capture_output=True)
        page = large / "report.html"
        print(f"made in {time.monotonic() - start:.2f} s, {page.stat().st_size / 1e6:.2f} MB")
        with browser() as running:
            for _ in range(3):
                start = time.monotonic()
                with opened(running, page):
                    print(f"opened in {time.monotonic() - start:.2f} s")


if __name__ == "__main__":
    main()
