"""Studies from Python: run here, stopped and continued, on a Dask cluster that loses a worker."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import netloom

matplotlib.use("Agg")

CELLS = 12
NETLOOM = Path(__file__).parent.parent / "target" / "release" / "netloom"


def study(size="200KB", repetitions=3, topology=None):
    return netloom.Study(
        "Schemes",
        {"topology": topology or {"kind": "fat-tree", "k": 4}},
        axes={
            "scheme": {
                "ecmp": {"routing.preset": "ecmp"},
                "flowcut": {"routing.preset": "flowcut-nic"},
            },
            "size": ("workload.size", ["10KB", size]),
        },
        repetitions=repetitions,
        claims=[{"id": "C1", "text": "it holds", "expression": "p99_fct('ecmp', '10KB') > 0"}],
    )


def files(folder: Path) -> dict[str, bytes]:
    """Everything below a folder but what depends on the machine."""
    kept = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    kept = (file for file in kept if file.name != "performance.json")
    return {str(file.relative_to(folder)): file.read_bytes() for file in kept}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "out"
    return study().run(folder, workers=2)


def test_a_frame_has_a_row_per_cell(here):
    frame = pl.DataFrame(here.frame())
    assert frame.height == len(here) == CELLS
    assert frame.columns[:4] == ["scheme", "size", "seed", "folder"]
    assert set(frame["scheme"]) == {"ecmp", "flowcut"} and set(frame["seed"]) == {1, 2, 3}
    for row in frame.iter_rows(named=True):
        summary = netloom.Outcome.read(here.folder / row["folder"]).summary
        assert row["slowdown.p99"] == summary["slowdown"]["p99"]
    assert here.claims[0]["holds"] is True
    units = here.frame().units
    assert units["fct.p99"] == "us" and units["throughput_bps"] == "bit/s" and "seed" not in units
    written = pq.read_table(here.folder / "results.parquet")
    assert written.to_pydict() == pa.table(here.frame()).to_pydict()
    assert json.loads(written.schema.metadata[b"units"])["fct.p99"] == "us"


def test_what_a_study_leaves_out_is_warned_of(tmp_path):
    scenario = {"topology": {"kind": "fat-tree", "k": 4, "rate": "100Gbps"}, "workload": {"size": "1KB"}}
    study = netloom.Study("t", scenario, axes={"network": ("topology.kind", ["fat-tree", "crossbar"])})
    assert study.warnings == [
        (
            'topology.k: left out, as topology.kind = "crossbar" was chosen after it and has no such field '
            "(1 of 2 points: network=crossbar)"
        )
    ]
    with pytest.warns(UserWarning, match="topology.k: left out"):
        study.run(tmp_path / "out")
    for row in pl.DataFrame(study.frame()).iter_rows(named=True):
        scenario = netloom.Outcome.read(study.folder / row["folder"]).scenario
        assert scenario["topology.rate"] == "100Gbps"


def test_flows_carry_their_labels(here):
    flows = pl.DataFrame(here.flows())
    assert flows.columns[:3] == ["scheme", "size", "seed"] and flows.height == CELLS * 16
    means = flows.group_by("scheme", "size", "seed").agg(pl.col("fct_ps").mean())
    frame = pl.DataFrame(here.frame()).join(means, on=["scheme", "size", "seed"])
    assert (frame["fct.mean"] - frame["fct_ps"] / 1e6).abs().max() < 1e-6
    assert here.flows().units["fct_ps"] == "ps"


def test_a_study_goes_on_where_it_was(here, tmp_path):
    first = study()

    def enough(progress):
        if progress["done"] == 4:
            raise StopIteration

    with pytest.raises(StopIteration):
        first.run(tmp_path / "out", workers=1, progress=enough)
    again = study()
    assert 4 <= again.open(tmp_path / "out") < CELLS
    ran = []
    again.run(workers=2, progress=ran.append)
    assert ran[-1] == {"done": CELLS, "cells": CELLS}
    assert files(tmp_path / "out") == files(here.folder)


def test_parts_make_the_whole(here, tmp_path):
    for part in (1, 2, 3):
        study().run(tmp_path / "out", shard=(part, 3))
    assert files(tmp_path / "out") == files(here.folder)
    with pytest.raises(netloom.ScenarioError, match="shard: expected i of n"):
        study().run(tmp_path / "out", shard=(4, 3))


def test_the_command_and_the_package_go_on_with_each_other(tmp_path):
    (tmp_path / "s.toml").write_text(
        """title = "t"
scenario = { topology = { kind = "fat-tree", k = 4 } }
axis = [{ name = "size", field = "workload.size", values = ["10KB", "20KB"] }]
"""
    )
    subprocess.run([NETLOOM, "study", "s.toml", "--shard", "1/2", "--out", "out"], cwd=tmp_path, check=True)
    study = netloom.Study.from_file(tmp_path / "s.toml")
    assert study.open(tmp_path / "out") == 1
    study.run()
    before = files(tmp_path / "out")
    subprocess.run([NETLOOM, "study", "s.toml", "--out", "out"], cwd=tmp_path, check=True)
    assert files(tmp_path / "out") == before
    assert sum(name.endswith("summary.json") for name in before) == 2


def test_tables_without_a_cell_have_their_labels(tmp_path):
    study = netloom.Study("x", {}, axes={"scheme": {"e": {"routing.preset": "ecmp"}}})
    study.open(tmp_path / "x")
    assert study.flows().columns[:3] == ["scheme", "seed", "src"] and len(study.flows()) == 0
    with pytest.raises(netloom.ScenarioError, match=r"there is no table `link` \(did you mean `links`"):
        study.table("link")


def test_pictures_have_a_line_per_label(here):
    assert len(here.plot.cdf().lines) == 4
    assert len(here.plot.cdf("fct", axis="scheme").lines) == 2
    assert len(here.plot.slowdown_by_size(axis="scheme").lines) == 2
    assert len(here.plot.bars("slowdown.p99", axis="size").patches) == 2
    assert len(netloom.run({"topology": {"kind": "fat-tree", "k": 4}}).plot.cdf(label="one").lines) == 1
    with pytest.raises(ValueError, match="axis: expected one of scheme, size"):
        here.plot.cdf(axis="load")


def test_pictures_have_plain_numbers_and_keys_beside_the_curves(here):
    ax = here.plot.bars("throughput_bps", axis="size")
    assert ax.get_ylabel() == "throughput_bps [Gbit/s]"
    largest = max(patch.get_height() for patch in ax.patches)
    rates = here.frame()["throughput_bps"]
    assert min(rates) <= largest * 1e9 <= max(rates)
    assert here.plot.bars("fct.p99", axis="size").get_ylabel() == "fct.p99 [us]"
    assert "error bars: least and largest" in ax.get_title(loc="left")
    ax = here.plot.cdf("fct", axis="scheme")
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_xticklabels() if label.get_text()]
    assert len(labels) > 1 and not [label for label in labels if "^" in label or "e" in label]
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_what_is_wrong_is_found_before_the_first_cell():
    with pytest.raises(netloom.ScenarioError, match="routing.preset: there is no .*`ecpm`"):
        netloom.Study("x", {}, axes={"scheme": {"e": {"routing.preset": "ecpm"}}})
    tree = netloom.Study("x", {"topology": {"kind": "fat-tree", "k": 4}})
    with pytest.raises(TypeError, match=r"client: expected a Dask client, .* found str"):
        tree.run(client="tcp://127.0.0.1:9")
    with pytest.raises(TypeError, match="shard: expected the part and how many there are"):
        tree.run(shard="1/2")
    with pytest.raises(TypeError, match="shard: expected a whole number, found float"):
        tree.run(shard=(0.5, 2))
    with pytest.raises(netloom.ScenarioError, match="workers: expected a whole number from 1"):
        tree.run(workers=0)
    with pytest.raises(TypeError, match="axis load: expected a dict of cases, or a field with its values"):
        netloom.Study("x", {}, axes={"load": [1, 2]})


def test_study_files_are_read(tmp_path):
    (tmp_path / "s.toml").write_text(
        'title = "t"\nscenario = { topology = { kind = "fat-tree", k = 4 } }\n[small]\nrepetitions = 2\n'
    )
    assert len(netloom.Study.from_file(tmp_path / "s.toml")) == 1
    assert len(netloom.Study.from_file(tmp_path / "s.toml", small=True)) == 2
    with pytest.raises(ValueError, match="not in both"):
        netloom.Study.from_file(tmp_path / "s.toml", small=True, full=True)
    with pytest.raises(netloom.ScenarioError, match="cannot read"):
        netloom.Study.from_file(tmp_path / "absent.toml")


# Dask


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(cluster, tmp_path):
    from distributed import Client

    # A network from a file, so that tasks have files to carry.
    ring = [(a, (a + 1) % 8) for a in range(8)]
    network = netloom.network(ring, hosts_per_switch=2, file=tmp_path / "ring.txt")
    study("20MB", topology=network).run(tmp_path / "local", workers=2)
    remote = study("20MB", topology=network)
    killed = []

    def kill_one(progress):
        if progress["done"] == 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).process.pid)
            os.kill(killed[0], signal.SIGKILL)

    with Client(cluster) as client:
        remote.run(tmp_path / "dask", client=client, progress=kill_one)
    assert killed
    assert files(tmp_path / "dask") == files(tmp_path / "local")
    # Nothing is left to do, here or there.
    assert study("20MB", topology=network).open(tmp_path / "dask") == CELLS


def test_an_address_that_nobody_answers_is_one_message(tmp_path):
    (tmp_path / "s.toml").write_text('title = "t"\nscenario = {}\n')
    command = [sys.executable, "-m", "netloom", "study", "s.toml", "--dask", "tcp://127.0.0.1:9"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and run.stderr.startswith("error: ") and "Traceback" not in run.stderr
    for address in ("", "no-port", "what://ever:1"):
        run = subprocess.run(
            [*command[:-1], address], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 2 and run.stderr.startswith("error: --dask: expected the address"), (
            run.stderr
        )
        assert "Traceback" not in run.stderr and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_what_batch_systems_send_interrupts_a_study(tmp_path, end):
    (tmp_path / "s.toml").write_text(
        """title = "t"
        [scenario]
        topology = { kind = "fat-tree", k = 8 }
        workload = { kind = "uniform", size = "1MiB", duration = "10s", window = 1 }
        """
    )
    command = [sys.executable, "-m", "netloom", "study", "s.toml", "--out", "out"]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out").exists():
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(end)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130 and said.splitlines()[-1].startswith("interrupted")


def test_the_command_hands_a_study_to_a_cluster(cluster, tmp_path):
    (tmp_path / "s.toml").write_text('title = "t"\nscenario = {}\n')
    command = [NETLOOM, "study", "s.toml", "--out", "out", "--dask", cluster.scheduler_address]
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert netloom.Study.from_file(tmp_path / "s.toml").open(tmp_path / "out") == 1
