"""Outcomes as Python data users read them: with pandas, polars and DuckDB."""

import json
import subprocess
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"

# A fat tree of 16 hosts with one slow link, so that drains, marks and samples occur.
SCENARIO = """
seed = 3
[topology]
kind = "fat-tree"
k = 4
[fabric]
ecn = { kmin = "20KB", kmax = "80KB", pmax = 0.5 }
[routing]
preset = "flowcut-nic"
[workload]
kind = "permutation"
size = "1MiB"
[[faults]]
kind = "degrade"
links = 2
fraction = 0.1
[measure]
sample = "10us"
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    scenario = folder / "small.toml"
    scenario.write_text(SCENARIO)
    subprocess.run([NETLOOM, "run", scenario, "--out", folder / "out"], check=True, capture_output=True)
    return folder / "out"


def summary(outcome):
    return json.loads((outcome / "summary.json").read_text())


def test_pandas_recomputes_the_summary(outcome):
    flows = pd.read_parquet(outcome / "flows.parquet")
    expected = summary(outcome)
    assert len(flows) == expected["flows"]["completed"] == 16
    assert flows.fct_ps.mean() == pytest.approx(expected["fct_ps"]["mean"])
    assert flows.fct_ps.quantile(0.99) == pytest.approx(expected["fct_ps"]["p99"])
    assert (flows.fct_ps >= flows.idle_fct_ps).all()
    assert flows.ooo_packets.sum() == 0


def test_polars_and_duckdb_read_the_same(outcome):
    links = pl.read_parquet(outcome / "links.parquet")
    total = duckdb.sql(f"select sum(bytes) from '{outcome}/links.parquet'").fetchall()[0][0]
    assert links["bytes"].sum() == total > 16 * 2**20
    series = duckdb.sql(f"select sum(bytes) from '{outcome}/series.parquet'").fetchall()[0][0]
    assert series == total


def test_any_number_of_threads_writes_the_same_files(outcome, tmp_path):
    scenario = outcome.parent / "small.toml"
    for threads in (2, 3, 4):
        out = tmp_path / str(threads)
        command = [NETLOOM, "run", scenario, "--threads", str(threads), "--out", out]
        subprocess.run(command, check=True, capture_output=True)
        for file in sorted(outcome.iterdir()):
            # What a run cost is the one thing that may differ.
            if file.name != "performance.json":
                assert (out / file.name).read_bytes() == file.read_bytes(), (threads, file.name)
