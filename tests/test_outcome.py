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

# The same with what is named: a window that holds the whole run, and the channel of the first host.
NAMED = """
windows = [{ name = "whole", from = "0us", until = "10ms" }]
channels = [{ name = "first-hop", from = "h0", to = "s0" }]
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


def test_new_columns_stand_behind_the_old_ones_and_groups_go_by_name(outcome):
    flows = pl.read_parquet(outcome / "flows.parquet")
    assert flows.columns[:3] == ["src", "dst", "flow"]
    assert flows.columns[-12:] == [
        "group",
        "class",
        "stream",
        "delivered_bytes",
        "delivered_after_warm_up_bytes",
        "max_resequencing",
        "cnms",
        "cnps",
        "trims",
        "returns",
        "flowlets",
        "stretched",
    ]
    assert flows.schema["group"] == pl.String and flows.schema["stream"] == pl.Boolean
    groups = duckdb.sql(f"select distinct \"group\" from '{outcome}/flows.parquet'").fetchall()
    assert groups == [("all",)] == [(name,) for name in summary(outcome)["groups"]]
    assert pl.read_parquet(outcome / "links.parquet").columns[-4:] == ["pauses", "lost", "trims", "returns"]
    series = pd.read_parquet(outcome / "series.parquet")
    assert list(series.columns) == ["time_ps", "channel", "queue_bytes", "bytes", "paused_ps"]
    assert series.paused_ps.sum() == 0


def test_windows_and_named_channels_reach_the_outcome(outcome, tmp_path):
    scenario = tmp_path / "named.toml"
    scenario.write_text(SCENARIO + NAMED)
    subprocess.run([NETLOOM, "run", scenario, "--out", tmp_path / "out"], check=True, capture_output=True)
    found = summary(tmp_path / "out")
    assert found["windows"]["whole"]["until_ps"] == 10**10
    windows = pd.read_parquet(tmp_path / "out" / "windows.parquet")
    assert list(windows.columns) == ["window", "src", "dst", "flow", "group", "bytes"]
    links = pd.read_parquet(tmp_path / "out" / "links.parquet")
    first_hop = links[(links["from"] == "h0") & (links["to"] == "s0")].iloc[0]
    channel = found["channels"]["first-hop"]
    expected = 8e12 * first_hop["bytes"] / found["totals"]["simulated_ps"]
    assert channel["throughput_bps"] == pytest.approx(expected)
    # Only named channels are sampled.
    series = pd.read_parquet(tmp_path / "out" / "series.parquet")
    assert series.channel.unique().tolist() == [first_hop.channel]
    assert series["bytes"].sum() == first_hop["bytes"]


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
