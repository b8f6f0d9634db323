"""The Python package as its users meet it: the built wheel, installed."""

import copy
import importlib.metadata
import json
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import netloom

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"

SMALL = {
    "name": "small",
    "topology": {"kind": "fat-tree", "k": 4},
    "workload": {"kind": "permutation", "size": "256KiB"},
    "faults": [{"kind": "degrade", "links": 2, "rate_factor": 0.1}],
    "measure": {"sample": "10us"},
}

#: Runs for hours if it is let.
ENDLESS = {
    "name": "endless",
    "topology": {"kind": "fat-tree", "k": 4},
    "workload": {"kind": "permutation", "size": "100GB"},
}


def small():
    return netloom.Scenario(copy.deepcopy(SMALL))


@pytest.fixture(scope="module")
def outcome():
    return netloom.run(small())


# Scenarios


def test_fields_are_set_and_read_by_their_paths():
    s = netloom.Scenario({"topology": {"kind": "fat-tree"}})
    s["topology.k"] = np.int64(8)
    s["routing.preset"] = "flowcut-nic"
    s["routing.granularity.threshold"] = 4.0
    s["fabric.ecn"] = {"kmin": 1000, "kmax": "9KB"}
    assert s["topology.k"] == 8 and s["fabric.ecn.kmax"] == "9KB"
    assert s["transport.mtu"] == "4KiB", "what was not set has its default"
    assert s["routing.granularity.kind"] == "flowcut"
    assert "routing.granularity.gap" not in s and "seed" in s
    del s["fabric.ecn"]
    assert "fabric.ecn.kmin" not in s
    text = s.explain()
    assert "threshold = 4.0" in text and netloom.Scenario.from_toml(text).explain() == text


def test_scenarios_come_from_files_text_and_dicts(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[topology]\nkind = "fat-tree"\nk = 4\n')
    from_file = netloom.Scenario.from_file(file)
    assert from_file["name"] == "mine"
    from_text = netloom.Scenario.from_toml(file.read_text())
    from_dict = netloom.Scenario.from_dict({"topology": {"kind": "fat-tree", "k": 4}})
    from_file["name"] = "scenario"
    assert from_file.explain() == from_text.explain() == from_dict.explain()
    again = pickle.loads(pickle.dumps(from_dict))
    assert again == from_dict and again.to_dict() == {"topology": {"kind": "fat-tree", "k": 4}}
    assert from_dict == from_text.copy() == netloom.Scenario(from_dict.to_dict()) and from_dict != from_file
    changed = from_dict.copy()
    changed["seed"] = 2
    assert from_dict["seed"] == 1


def test_pickles_hold_what_was_written(tmp_path):
    (tmp_path / "flows.csv").write_text("src,dst,bytes,start_ps\n0,1,1000,0\n")
    file = tmp_path / "s.toml"
    file.write_text(
        'workload = { kind = "flow-list", file = "flows.csv" }\ntopology = { k = 4, rate = "9Gbps" }\n'
    )
    s = netloom.Scenario.from_file(file)
    s["topology.kind"] = "crossbar"
    again = pickle.loads(pickle.dumps(s))
    assert again.to_dict() == {
        "name": "s",
        "workload": {"kind": "flow-list", "file": str(tmp_path / "flows.csv")},
        "topology": {"rate": "9Gbps", "kind": "crossbar"},
    }
    assert again.explain() == s.explain()
    # What is wrong can be passed on, too.
    s["sede"] = 1
    assert pickle.loads(pickle.dumps(s))["sede"] == 1


def test_another_kind_keeps_what_was_set():
    for path, value in [
        ("topology.kind", "slim-fly"),
        ("topology", "slim-fly"),
        ("topology", {"kind": "slim-fly"}),
    ]:
        s = netloom.Scenario({"topology": {"kind": "fat-tree", "k": 4, "rate": "100Gbps"}})
        s["workload.size"] = "1KB"
        s[path] = value
        assert s["topology.rate"] == "100Gbps"
        warnings = netloom.run(s).summary["warnings"]
        assert warnings == [
            'topology.k: left out, as topology.kind = "slim-fly" was chosen after it and has no such field'
        ]


def test_what_contains_itself_is_refused():
    fields = {"topology": {"kind": "fat-tree"}}
    fields["topology"]["k"] = fields
    items = []
    items.append(items)
    for value in (fields, {"faults": items}):
        with pytest.raises(netloom.ScenarioError, match="as if one contained itself"):
            netloom.run(value)


def test_the_package_knows_its_version():
    assert netloom.__version__ == importlib.metadata.version("netloom")


def test_errors_name_file_line_and_field(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text('seed = 1\n[routing]\npreset = "flowcutt-nic"\n')
    with pytest.raises(netloom.ScenarioError) as caught:
        netloom.run(file)
    error = caught.value
    assert (error.file, error.line, error.field) == (str(file), 3, "routing.preset")
    assert "did you mean `flowcut-nic`?" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

    s = small()
    s["topology.k"] = 5
    s["workload.sise"] = 1
    with pytest.raises(netloom.ScenarioError, match="workload.sise: unknown field `sise`") as caught:
        s.explain()
    assert caught.value.file is None
    del s["workload.sise"]
    with pytest.raises(netloom.ScenarioError, match="topology.k: expected an even number"):
        netloom.run(s)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "workload.load: expected a finite number, found NaN"),
        (float("inf"), "workload.load: expected a finite number, found inf"),
        (2**63, "workload.load: the number 9223372036854775808 does not fit 64 bits"),
        ({1: 2}, "workload.load: expected names as keys, found 1"),
    ],
)
def test_values_that_no_scenario_can_hold_are_refused(value, message):
    with pytest.raises(netloom.ScenarioError, match=message):
        small()["workload.load"] = value


def test_numbers_of_numpy_are_numbers():
    s = netloom.Scenario({"topology": {"kind": "fat-tree", "k": np.int64(4)}, "seed": np.uint8(3)})
    s["measure.packets"] = np.bool_(True)
    s["routing.preset"] = np.str_("ecmp")
    assert "packets = true" in s.explain() and s["seed"] == 3
    with pytest.raises(netloom.ScenarioError, match="workload.load: expected a finite number, found NaN"):
        s["workload.load"] = np.float32("nan")


def test_names_are_those_that_users_import():
    assert repr(netloom.ScenarioError) == "<class 'netloom.ScenarioError'>"
    classes = [thing for thing in map(netloom.__dict__.get, netloom.__all__) if isinstance(thing, type)]
    assert {thing.__module__ for thing in classes} == {"netloom"} and len(classes) >= 10


def test_threads_are_counted():
    for threads, error, message in [
        (0, netloom.ScenarioError, "threads: expected a whole number from 1 to 256, found 0"),
        (-1, netloom.ScenarioError, "threads: expected a whole number from 1 to 256, found -1"),
        ("2", TypeError, "threads: expected a whole number, found str"),
    ]:
        with pytest.raises(error, match=message):
            netloom.run(small(), threads=threads)
    with pytest.raises(
        TypeError, match="scenario: expected a Scenario, a dict or a file's name, found NoneType"
    ):
        netloom.run(None)


def test_what_is_no_value_is_a_type_error():
    with pytest.raises(TypeError, match="seed: expected text, a number"):
        small()["seed"] = object()
    with pytest.raises(KeyError, match="did you mean `routing`"):
        small()["routin"]
    with pytest.raises(netloom.ScenarioError, match="a field name is missing"):
        small()["routing..preset"]


def test_a_route_is_explained():
    route = small().route(0, 15)
    assert route[0]["at"] == "s0" and route[-1]["takes"] == "h15"
    assert len(route) == 5 and "hash of source" in repr(route)
    with pytest.raises(netloom.ScenarioError, match="dst: expected a host from 0 to 15, found 16"):
        small().route(0, 16)


# Outcomes


def test_the_folder_has_the_bytes_of_the_command_line(tmp_path):
    scenario = tmp_path / "small.toml"
    scenario.write_text(small().explain())
    run = [NETLOOM, "run", scenario, "--out", tmp_path / "cli", "--threads", "2"]
    subprocess.run(run, check=True, capture_output=True)
    outcome = netloom.run(small(), out=tmp_path / "python")
    files = {file.name for file in (tmp_path / "cli").iterdir()}
    assert files == {file.name for file in outcome.folder.iterdir()} and "series.parquet" in files
    for file in files - {"performance.json"}:
        assert (tmp_path / "cli" / file).read_bytes() == (tmp_path / "python" / file).read_bytes(), file
    with pytest.raises(FileExistsError, match="replace=True"):
        netloom.run(small(), out=tmp_path / "python")
    netloom.run(small(), out=tmp_path / "python", replace=True)


def test_tables_in_memory_equal_those_on_disk(outcome, tmp_path):
    on_disk = netloom.run(small(), out=tmp_path / "out")
    read = netloom.Outcome.read(tmp_path / "out")
    for name in ("flows", "links", "series"):
        parquet = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        for one in (outcome, on_disk, read):
            assert pl.DataFrame(getattr(one, name)).equals(parquet), name
    assert len(outcome.windows) == len(outcome.flow_series) == 0
    assert outcome.summary == read.summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert outcome.scenario.explain() == small().explain()


def test_every_data_library_takes_the_tables_as_they_are(outcome):
    flows = outcome.flows
    mean = outcome.summary["fct_ps"]["mean"]
    assert pl.DataFrame(flows)["fct_ps"].mean() == pytest.approx(mean)
    assert pd.DataFrame.from_arrow(flows).fct_ps.mean() == pytest.approx(mean)
    assert flows.to_pandas().fct_ps.mean() == pytest.approx(mean)
    assert duckdb.sql("select avg(fct_ps) from flows").fetchall()[0][0] == pytest.approx(mean)
    assert flows["fct_ps"].mean() == pytest.approx(mean)
    table = pa.table(flows)
    assert table.num_rows == len(flows) == 16
    assert table.schema.field("fct_ps").metadata == {b"unit": b"ps"}
    assert table.schema.field("bytes").metadata == {b"unit": b"B"}
    assert pa.table(outcome.links).schema.field("rate_bps").metadata == {b"unit": b"bit/s"}
    assert pa.schema(flows) == table.schema
    assert pl.DataFrame(netloom.Table.from_arrow(table)).equals(pl.DataFrame(flows))
    assert outcome.flows.to_pandas().attrs["units"]["start_ps"] == "ps"


def test_unfinished_flows_have_no_completion_time():
    s = small()
    s["measure.until"] = "5us"
    flows = netloom.run(s).flows
    assert np.isnan(flows["fct_ps"]).all() and pl.DataFrame(flows)["fct_ps"].null_count() == 16
    with pytest.raises(KeyError, match="did you mean `fct_ps`"):
        flows["fct"]


def test_the_summary_is_a_row_of_numbers_too(outcome):
    row = pl.DataFrame(outcome.summary.table())
    assert row.height == 1
    assert row["slowdown.p99"][0] == outcome.summary["slowdown"]["p99"]
    assert outcome.summary.metrics()["flows.completed"] == 16
    assert pa.table(outcome.summary.table()).schema.field("fct_ps.p99").metadata == {b"unit": b"ps"}


def test_a_folder_that_is_no_outcome_is_called_so(tmp_path):
    with pytest.raises(OSError, match="no complete outcome in"):
        netloom.Outcome.read(tmp_path)


# Runs


def test_the_number_of_threads_does_not_matter(outcome):
    assert pl.DataFrame(netloom.run(small(), threads=2).flows).equals(pl.DataFrame(outcome.flows))


def test_progress_is_told_and_may_end_the_run():
    told = []

    def enough(progress):
        told.append(progress)
        if len(told) == 3:
            raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        netloom.run(ENDLESS, progress=enough)
    assert [set(p) for p in told] == [{"time_s", "flows_done", "flows", "packet_hops"}] * 3
    assert told[0]["time_s"] < told[2]["time_s"] and told[2]["packet_hops"] > 0 and told[2]["flows"] == 16


def test_other_threads_of_python_run_meanwhile():
    counted, stop = 0, threading.Event()

    def count():
        nonlocal counted
        while not stop.wait(0.005):
            counted += 1

    other = threading.Thread(target=count, daemon=True)
    other.start()
    until = time.monotonic() + 1

    def enough(_):
        if time.monotonic() > until:
            raise StopIteration

    with pytest.raises(StopIteration):
        netloom.run(ENDLESS, progress=enough)
    stop.set()
    other.join()
    assert counted > 20


def test_ctrl_c_writes_what_was_seen_and_raises(tmp_path):
    code = f"""
        import netloom
        try:
            netloom.run({ENDLESS!r}, out="out", progress=lambda _: print("running", flush=True))
        except KeyboardInterrupt:
            print("interrupted", netloom.Outcome.read("out").summary["status"])
    """
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout.readline() == "running\n"
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0 and out.splitlines()[-1] == "interrupted interrupted"


def test_a_deadlock_is_an_error_of_the_simulation():
    ring = {
        "topology": {"kind": "hyperx", "dimensions": [5], "hosts": 4},
        "workload": {"kind": "incast"},
    }
    with pytest.raises(netloom.ScenarioError):
        netloom.run(ring)
