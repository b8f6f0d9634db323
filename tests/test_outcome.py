"""Outcomes as Python data users read them: with pandas, polars and DuckDB."""

import json
import subprocess
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

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
rate_factor = 0.1
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
    assert (flows.fct_ps >= flows.ideal_fct_ps).all()
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
    assert flows.columns[-13:] == [
        "group",
        "class",
        "stream",
        "delivered_bytes",
        "delivered_after_warm_up_bytes",
        "max_resequencing",
        "cnms",
        "cnps",
        "trims",
        "returned_to_sender",
        "flowlets",
        "stretched",
        "delivered_in_drain_bytes",
    ]
    assert flows.schema["group"] == pl.String and flows.schema["stream"] == pl.Boolean
    groups = duckdb.sql(f"select distinct \"group\" from '{outcome}/flows.parquet'").fetchall()
    assert groups == [("all",)] == [(name,) for name in summary(outcome)["groups"]]
    links = pl.read_parquet(outcome / "links.parquet").columns[-8:]
    shares = ["utilisation", "active_utilisation"]
    assert links == [
        "pauses",
        "lost",
        "trims",
        "returned_to_sender",
        "bytes_in_drain",
        "busy_in_drain_ps",
        *shares,
    ]
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
    under_load = found["totals"]["load_until_ps"] or found["totals"]["simulated_ps"]
    expected = 8e12 * (first_hop["bytes"] - first_hop["bytes_in_drain"]) / under_load
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


TRACED = """
packets = true
trace = { flows = [{ src = 0, dst = 9 }], channels = [{ from = "h3", to = "s1" }] }
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    workload = 'kind = "off-diagonal"\noffset = 9\nsize = "64KiB"'
    scenario = SCENARIO.replace('kind = "permutation"\nsize = "1MiB"', workload).replace(
        'sample = "10us"', TRACED
    )
    (folder / "traced.toml").write_text(scenario)
    command = [NETLOOM, "run", folder / "traced.toml", "--out", folder / "out"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "out"


def test_packets_are_summed_up_by_flow_and_by_latency(traced):
    expected = summary(traced)["packet_paths"]["all"]
    flows, packets = (pl.read_parquet(traced / f"{name}.parquet") for name in ("flows", "packets"))
    assert packets["packets"].sum() == flows["packets"].sum() == expected["packets"]
    assert packets["latency_max_ps"].max() == expected["latency_ps"]["max"]
    mean = (packets["latency_mean_ps"] * packets["packets"]).sum() / packets["packets"].sum()
    assert mean == pytest.approx(expected["latency_ps"]["mean"])
    bins = pl.read_parquet(traced / "latency.parquet").sort("from_ps")
    assert bins["packets"].sum() == expected["packets"] == sum(expected["hops"].values())
    half = bins.filter(pl.col("packets").cum_sum() >= expected["packets"] / 2).row(0, named=True)
    assert half["from_ps"] <= expected["latency_ps"]["p50"] < half["until_ps"]


def test_wireshark_reads_a_trace(traced):
    printed = subprocess.run([NETLOOM, "pcapng", traced], check=True, capture_output=True, text=True)
    trace = pl.read_parquet(traced / "trace.parquet")
    assert printed.stdout == f"{trace.height} packets in {traced}.pcapng\n"
    capture = rdpcap(f"{traced}.pcapng")
    assert len(capture) == trace.height
    for packet, row in zip(capture, trace.iter_rows(named=True), strict=True):
        assert packet.wirelen == row["size_bytes"] and float(packet.time) == pytest.approx(
            row["time_ps"] / 1e12
        )
        assert packet[IP].src == f"10.0.0.{row['src']}" and packet[IP].dst == f"10.0.0.{row['dst']}"
        assert int.from_bytes(bytes(packet[UDP].payload)[8:12], "big") == row["seq"]
        assert (packet[IP].tos & 3 == 3) == row["marked"]
        checksum = packet[IP].chksum
        del packet[IP].chksum
        assert IP(bytes(packet[IP])).chksum == checksum
    assert set(trace["kind"]) == {"data", "ack"}
    first = trace.filter((pl.col("src") == 0) & (pl.col("seq") == 0) & (pl.col("kind") == "data"))
    assert first["hops"].to_list() == [1, 2, 3, 4, 5, 6]


def test_a_run_without_a_trace_has_no_capture(outcome):
    refused = subprocess.run([NETLOOM, "pcapng", outcome], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "holds no trace" in refused.stderr
