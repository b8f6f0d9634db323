"""Networks, flows, sizes and driven runs from Python."""

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import netloom

TREE = {"kind": "fat-tree", "k": 4}


@pytest.fixture(autouse=True)
def _files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NETLOOM_DATA", str(tmp_path / "data"))


# Networks


def test_a_network_is_arrays():
    network = netloom.topology("fat-tree:k=4,rate=100Gbps")
    assert (network.hosts, network.switches, len(network.links)) == (16, 20, 48)
    assert isinstance(network.links["a"], np.ndarray)
    assert set(network.links["rate_bps"].tolist()) == {10**11}
    assert network.links.units == {"rate_bps": "bit/s", "latency_ps": "ps"}
    matrix = network.adjacency()
    assert matrix.shape == (20, 20) and (matrix == matrix.T).all() and matrix.sum() == 2 * 32
    assert network.metrics["diameter"] == 4 and network.cost["dollars_per_host"] > 0
    assert np.unique(network.switch_table["level"], return_counts=True)[1].tolist() == [8, 8, 4]
    assert netloom.topology(TREE).node_names[-1] == "s19"
    jellyfish = {"kind": "jellyfish", "switches": 20, "degree": 4, "hosts_per_switch": 2}
    links = [netloom.topology(jellyfish, seed=seed).links for seed in (1, 1, 2)]
    assert pl.DataFrame(links[0]).equals(pl.DataFrame(links[1]))
    assert not pl.DataFrame(links[0]).equals(pl.DataFrame(links[2]))


def test_what_is_no_network_is_refused():
    with pytest.raises(netloom.ScenarioError, match="there is no topology `fat-treee`"):
        netloom.topology("fat-treee:k=4")
    with pytest.raises(netloom.ScenarioError, match="topology.k: expected an even number"):
        netloom.topology({"kind": "fat-tree", "k": 5})


def test_a_network_goes_to_networkx_and_back():
    network = netloom.topology(TREE)
    graph = network.to_networkx()
    assert graph.number_of_nodes() == 36 and graph.degree("s0") == 4 and graph.nodes["s19"]["level"] == 3
    assert nx.shortest_path_length(graph, "h0", "h15") == 6
    assert graph.edges["h0", "s0"]["rate_bps"] == 2 * 10**11
    back = netloom.topology(netloom.network(graph))
    assert (back.hosts, back.switches, len(back.links)) == (16, 20, 48)
    assert (back.links["latency_ps"] == network.links["latency_ps"]).all()


def test_paths_and_throughput_are_those_of_the_command_line():
    network = netloom.topology("slim-fly:q=5")
    tables = network.paths(samples=200)
    assert all(len(table) > 0 for table in tables.values()) and len(tables) >= 2
    found = network.throughput("minimal", "uniform", method="exact")
    assert found["lower"] <= found["value"] <= found["upper"] and found["router_pairs"] > 0
    matrix = np.zeros((network.switches, network.switches))
    matrix[0, 1] = matrix[1, 0] = 1.0
    assert network.throughput("optimal", matrix)["upper"] > 1
    with pytest.raises(netloom.ScenarioError, match="traffic: expected a matrix of 50 x 50 switches"):
        network.throughput("optimal", np.ones((3, 3)))
    with pytest.raises(netloom.ScenarioError, match="routing.kind: there is no routing `minimall`"):
        network.throughput("minimall")


def dumbbell():
    return netloom.network([("a", "x"), ("b", "x"), ("c", "y"), ("x", "y")], rate="100Gbps", latency="1us")


def test_a_network_of_ones_own_runs():
    s = netloom.Scenario({"topology": dumbbell()})
    s["workload"] = netloom.flow_list({"src": [0, 1], "dst": [2, 2], "bytes": [10**6, 10**6]})
    flows = netloom.run(s).flows
    assert flows["bytes"].tolist() == [10**6, 10**6] and (flows["fct_ps"] > 160e6).all()


def test_links_come_as_arrays_frames_and_pairs(tmp_path):
    ring = [(0, 1), (1, 2), (2, 0)]
    frame = pd.DataFrame(ring, columns=["a", "b"])
    file = tmp_path / "ring.txt"
    given = [ring, np.array(ring), frame, {"a": [0, 1, 2], "b": [1, 2, 0]}]
    made = [netloom.network(links, hosts_per_switch=2) for links in given]
    assert all(topology == made[0] for topology in made), "the same network is the same file"
    assert netloom.network(ring, hosts_per_switch=2, file=file)["path"] == str(file)
    assert netloom.topology(made[0]).hosts == 6
    with_rates = {"a": ["h", "g"], "b": ["s", "s"], "rate_bps": [10**9, 10**10], "latency_ps": [5, 6]}
    links = netloom.topology(netloom.network(with_rates, hosts=["g", "h"])).links
    assert dict(zip(links["latency_ps"].tolist(), links["rate_bps"].tolist(), strict=True)) == {
        5: 10**9,
        6: 10**10,
    }
    with pytest.raises(netloom.ScenarioError, match="names of nodes without blanks"):
        netloom.network([("a b", "c")])
    with pytest.raises(netloom.ScenarioError, match="links: expected a column `b`, found a"):
        netloom.network({"a": [1]})


# Flows and sizes


def test_flows_come_from_any_frame():
    columns = {"src": [0, 3], "dst": [9, 1], "bytes": [1000, 2000], "start_ps": [5, 0]}
    frames = [columns, pd.DataFrame(columns), pl.DataFrame(columns), pl.DataFrame(columns).to_arrow()]
    lists = [netloom.flow_list(frame) for frame in frames]
    assert all(workload == lists[0] for workload in lists)
    outcome = netloom.run({"topology": TREE, "workload": lists[0]})
    assert outcome.flows["start_ps"].tolist() == [5, 0]
    again = netloom.run({"topology": TREE, "workload": netloom.flow_list(outcome.flows)})
    assert pl.DataFrame(again.flows).equals(pl.DataFrame(outcome.flows))


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"src": [0], "dst": [1]}, netloom.ScenarioError, "flows: expected a column `bytes`, found src, dst"),
        ({"src": [0.5], "dst": [1], "bytes": [1]}, TypeError, "src: expected a column of whole numbers"),
        ({"src": [0], "dst": [1], "bytes": [-1]}, netloom.ScenarioError, "bytes: row 0: expected a number"),
        ({"src": [0], "dst": [None], "bytes": [1]}, netloom.ScenarioError, "dst: expected a number in every"),
        ({"src": [2**40], "dst": [1], "bytes": [1]}, netloom.ScenarioError, "src: 1099511627776 is no host"),
        ({"src": ["h0"], "dst": [1], "bytes": [1]}, TypeError, "src: expected a column of whole numbers"),
        (3, TypeError, "expected a data frame or a dict of columns, found int"),
        (
            {"src": [], "dst": [], "bytes": []},
            netloom.ScenarioError,
            "flows: expected at least one flow, found none",
        ),
    ],
)
def test_frames_with_wrong_columns_are_refused(columns, error, message):
    with pytest.raises(error, match=message):
        netloom.flow_list(columns)


def test_whole_numbers_of_any_size_are_taken(tmp_path):
    expected = netloom.flow_list({"src": [0], "dst": [9], "bytes": [100]})
    narrow = pl.DataFrame({"src": [0], "dst": [9], "bytes": [100]})
    narrow = narrow.with_columns(pl.col("src").cast(pl.Int8), pl.col("dst").cast(pl.Int16))
    assert netloom.flow_list(narrow) == expected
    # A sum of whole numbers is a HUGEINT, which Arrow knows as a decimal number.
    assert (
        netloom.flow_list(duckdb.sql("select 0 as src, 9 as dst, sum(n) as bytes from (values (100)) t(n)"))
        == expected
    )
    with pytest.raises(netloom.ScenarioError, match="bytes: 18446744073709551616 does not fit 64 bits"):
        netloom.flow_list(duckdb.sql("select 0 as src, 9 as dst, 18446744073709551616::hugeint as bytes"))


WRITERS = {
    "polars": lambda flows, file: flows.write_parquet(file),
    "pandas": lambda flows, file: pd.DataFrame(flows.to_dict(as_series=False)).to_parquet(file),
    "DuckDB": lambda flows, file: duckdb.sql("from flows").write_parquet(str(file)),
    "DuckDB, zstd": lambda flows, file: duckdb.sql("from flows").write_parquet(str(file), compression="zstd"),
    "second pages, zstd": lambda flows, file: pd.DataFrame(flows.to_dict(as_series=False)).to_parquet(
        file, compression="zstd", data_page_version="2.0"
    ),
    "snappy": lambda flows, file: flows.write_parquet(file, compression="snappy"),
    "uncompressed": lambda flows, file: flows.write_parquet(file, compression="uncompressed"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_tables_are_read_as_they_are_written_by_default(tmp_path, writer):
    file = tmp_path / "flows.parquet"
    # Enough of them, and few enough values, for pages that are really compressed.
    flows = pl.DataFrame({"src": [0, 1] * 500, "dst": [9, 10] * 500, "bytes": list(range(100, 1100))})
    WRITERS[writer](flows, file)
    run = netloom.run({"topology": TREE, "workload": {"kind": "flow-list", "file": str(file)}})
    assert sorted(run.flows["bytes"].tolist()) == list(range(100, 1100))


@pytest.mark.parametrize("codec", ["gzip", "lz4", "brotli"])
def test_a_table_that_is_compressed_otherwise_says_how_to_write_it(tmp_path, codec):
    file = tmp_path / "flows.parquet"
    pl.DataFrame({"src": [0], "dst": [9], "bytes": [100]}).write_parquet(file, compression=codec)
    expected = f"src is compressed by {codec}.*: expected Zstandard, Snappy or no compression"
    with pytest.raises(netloom.ScenarioError, match=expected):
        netloom.run({"topology": TREE, "workload": {"kind": "flow-list", "file": str(file)}})


def test_a_matrix_of_bytes_is_a_workload():
    matrix = np.zeros((16, 16), dtype=int)
    matrix[0, 5], matrix[7, 2] = 3000, 4000
    flows = netloom.run({"topology": TREE, "workload": netloom.traffic_matrix(matrix)}).flows
    assert list(zip(flows["src"], flows["dst"], flows["bytes"], strict=True)) == [(0, 5, 3000), (7, 2, 4000)]
    for wrong, message in [
        (np.ones((2, 2)), "diagonal"),
        (np.ones((2, 3)), "square"),
        (-matrix, "from 0 on"),
        (0 * matrix, "matrix: expected some traffic, found none"),
        (1e300 * matrix, "matrix: expected at most 9007199254740992 bytes"),
        (np.full((2, 2), np.nan), "matrix: expected whole numbers of bytes"),
    ]:
        with pytest.raises(netloom.ScenarioError, match=message):
            netloom.traffic_matrix(wrong)


def test_sizes_come_from_samples_and_functions():
    def drawn(size):
        workload = {"kind": "uniform", "size": size, "messages_per_host": 20}
        return netloom.run({"topology": TREE, "workload": workload}).flows["bytes"]

    assert set(drawn(netloom.sizes([100, 5000, 5000])).tolist()) == {100, 5000}
    spread = drawn(netloom.sizes([1000, 2000], [0, 1]))
    assert spread.min() >= 1000 and spread.max() <= 2000 and len(set(spread.tolist())) > 100
    with pytest.raises(netloom.ScenarioError, match="shares: expected as many shares as sizes, 2, found 1"):
        netloom.sizes([1, 2], [1])
    with pytest.raises(netloom.ScenarioError, match="expected at least one size"):
        netloom.sizes([float("nan")])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: netloom.traffic_matrix([["a"]]), TypeError, "matrix: expected numbers, found <U1"),
        (
            lambda: netloom.traffic_matrix(np.eye(2)[::-1], start_ps=-1),
            netloom.ScenarioError,
            "start_ps: expected a whole number from 0",
        ),
        (lambda: netloom.sizes(["a"]), TypeError, "sizes: expected numbers, found <U1"),
        (
            lambda: netloom.sizes([1, 2], [0, np.nan]),
            netloom.ScenarioError,
            "shares: expected rising numbers",
        ),
        (lambda: netloom.sizes([1, 2], [1, 0.5]), netloom.ScenarioError, "shares: expected rising numbers"),
        (
            lambda: netloom.traffic_matrix([[0, 1j], [0, 0]]),
            TypeError,
            "matrix: expected numbers, found complex",
        ),
        (lambda: netloom.traffic_matrix([[0, 1], [0]]), TypeError, "matrix: expected numbers in rows of"),
        (
            lambda: netloom.network(nx.DiGraph([(0, 1), (1, 2)])),
            netloom.ScenarioError,
            "links: expected an undirected graph",
        ),
        (
            lambda: netloom.network([(0, 1), (1, 2), (1, 0)]),
            netloom.ScenarioError,
            "links: expected every link once, as links are full duplex, found 0 to 1 and 1 to 0",
        ),
        (lambda: netloom.Simulation(3), TypeError, "scenario: expected a Scenario, a dict or a file's name"),
        (lambda: netloom.network(None), TypeError, "links: expected a graph, columns or pairs of nodes"),
        (lambda: netloom.network("ab"), TypeError, "links: expected a graph, columns or pairs of nodes"),
        (lambda: netloom.network([1, 2]), netloom.ScenarioError, "links: expected two ends"),
        (
            lambda: netloom.network({"a": [0], "b": [1], "rate_bps": [np.nan]}),
            netloom.ScenarioError,
            "rate_bps: expected a whole number from 0 on, found nan",
        ),
        (
            lambda: netloom.network({"a": [0], "b": [1], "rate_bps": ["10Gbps"]}),
            netloom.ScenarioError,
            "rate_bps: expected a whole number from 0 on, found '10Gbps'",
        ),
        (lambda: netloom.topology(None), TypeError, "spec: expected a kind, a file's name, a dict"),
        (
            lambda: netloom.topology("jellyfish:switches=10,degree=3", seed=-1),
            netloom.ScenarioError,
            "seed: expected a whole number from 0",
        ),
        (
            lambda: netloom.topology("complete:switches=4").paths(samples=-1),
            netloom.ScenarioError,
            "samples: expected a whole number from 1",
        ),
        (
            lambda: netloom.topology("complete:switches=4").throughput(gap=float("nan")),
            netloom.ScenarioError,
            "gap: expected a number above 0 and below 1, found NaN",
        ),
        (
            lambda: netloom.Scenario({"topology": TREE}).route(-1, 2),
            netloom.ScenarioError,
            "src: expected a host from 0 to 15, found -1",
        ),
    ],
)
def test_what_makes_no_sense_is_one_message(make, error, message):
    with pytest.raises(error, match=message):
        make()


# Driven runs


@pytest.mark.parametrize(("reaction", "threads"), [(0, 1), ("10ns", 1), ("2us", 1), ("2us", 2)])
def test_a_driven_run_equals_the_listed_one(reaction, threads):
    scenario = {"topology": TREE, "routing": {"preset": "flowcut-nic"}}
    sim = netloom.Simulation(scenario, reaction=reaction, threads=threads)
    started = []

    def start(src, dst, size, at=None):
        started.append((src, dst, size, sim.earliest_start_ps if at is None else at))
        sim.start(src, dst, size, tag=len(started), at=at)

    for host in range(1, 16):
        start(host, 0, 10_000 * host, at=host * 100)
    completions = []
    while done := sim.next_completion():
        completions.append(done)
        assert sim.now_ps == done.time_ps
        assert sim.earliest_start_ps == done.time_ps + {0: 0, "10ns": 10_000, "2us": 2_000_000}[reaction]
        if reaction and len(started) < 60:
            with pytest.raises(netloom.ScenarioError, match="after the last completion at"):
                sim.start(0, 1, 1, at=sim.earliest_start_ps - 1)
        if len(started) < 60:
            start(done.dst, (done.src + 7) % 16 or 1, done.size // 2 + 1)
    driven = sim.finish()
    assert [done.time_ps for done in completions] == sorted(done.time_ps for done in completions)
    src, dst, size, at = zip(*started, strict=True)
    listed = scenario | {
        "workload": netloom.flow_list({"src": src, "dst": dst, "bytes": size, "start_ps": at})
    }
    listed = netloom.run(listed, threads=2)
    for table in ("flows", "links"):
        assert pl.DataFrame(getattr(driven, table)).equals(pl.DataFrame(getattr(listed, table)))
    assert driven.summary == listed.summary
    assert sorted(done.fct_ps for done in completions) == sorted(listed.flows["fct_ps"].tolist())


def test_threads_need_a_reaction_time():
    with pytest.raises(netloom.ScenarioError, match="threads: expected 1 without a reaction time, found 2"):
        netloom.Simulation({"topology": TREE}, threads=2)


@pytest.mark.parametrize("reaction", [0, "10ns", "2us"])
def test_driven_messages_of_servers_complete_with_their_last_part(reaction):
    scenario = {"topology": TREE, "servers": {"nics": 4, "nic_selection": "stripe"}}
    sim = netloom.Simulation(scenario, reaction=reaction)
    sim.start(0, 3, "64KiB", tag="a")
    with pytest.raises(netloom.ScenarioError, match="dst: expected a host from 0 to 3"):
        sim.start(0, 4, 1)
    done = sim.next_completion()
    assert sim.next_completion() is None  # the last ACKs
    driven = sim.finish()
    parts = driven.parts
    assert parts["rail"].tolist() == [0, 1, 2, 3] and parts["src"].tolist() == [0, 1, 2, 3]
    assert parts["dst"].tolist() == [12, 13, 14, 15] and parts["bytes"].tolist() == [16384] * 4
    assert driven.flows["fct_ps"].tolist() == [done.fct_ps] == [max(parts["fct_ps"])]
    flows = netloom.flow_list({"src": [0], "dst": [3], "bytes": [65536], "start_ps": [0]})
    listed = netloom.run(scenario | {"workload": flows}, threads=2)
    for table in ("flows", "parts", "links"):
        assert pl.DataFrame(getattr(driven, table)).equals(pl.DataFrame(getattr(listed, table)))
    assert driven.summary == listed.summary and driven.summary["flows"]["completed"] == 1
    assert len(netloom.run({"topology": TREE}).parts) == 0


def test_time_goes_on_as_it_is_told():
    sim = netloom.Simulation({"topology": TREE})
    assert sim.now_ps == 0 and sim.next_completion("5us") is None and sim.now_ps == 5_000_000
    sim.start(0, 1, "64KiB", tag="a")
    assert sim.next_completion(5_000_001) is None
    sim.run_until("1ms")
    done = sim.next_completion()
    assert (done.tag, done.size, done.start_ps) == ("a", 65536, 5_000_000) and sim.now_ps == 10**9
    for wrong, message in [
        ({"src": 0, "dst": 16, "size": 1}, "dst: expected a host from 0 to 15"),
        ({"src": -1, "dst": 1, "size": 1}, "src: expected a whole number from 0"),
        ({"src": 0, "dst": 1, "size": -1}, "size: expected a whole number from 0"),
        ({"src": 0, "dst": 1, "size": 1, "at": "1us"}, "at: expected 1ms or later, found 1us"),
        ({"src": 0, "dst": 1, "size": "64 apples"}, "size: "),
    ]:
        with pytest.raises(netloom.ScenarioError, match=message):
            sim.start(**wrong)
    with pytest.raises(TypeError, match="size: expected a whole number"):
        sim.start(0, 1, 1.5)
    assert len(sim.finish().flows) == 1
    with pytest.raises(RuntimeError, match="the run has ended"):
        sim.run_until()


def test_a_workload_runs_beside_driven_flows():
    workload = {"kind": "permutation", "size": "100KB"}
    sim = netloom.Simulation({"topology": TREE, "workload": workload})
    sim.start(0, 1, 777)
    assert sim.next_completion().size == 777 and sim.next_completion() is None
    assert sorted(set(sim.finish().flows["bytes"].tolist())) == [777, 100_000]


def test_an_end_of_measurement_makes_no_sense_in_a_driven_run():
    with pytest.raises(netloom.ScenarioError, match="measure.until: expected none"):
        netloom.Simulation({"topology": TREE, "measure": {"until": "1ms"}})
