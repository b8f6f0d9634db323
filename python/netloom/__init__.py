"""netloom: simulate and analyse datacenter and HPC fabrics.

>>> import netloom
>>> s = netloom.Scenario({"topology": {"kind": "fat-tree", "k": 4}, "workload": {"size": "1MiB"}})
>>> s["routing.preset"] = "flowcut-nic"
>>> outcome = netloom.run(s)
>>> outcome.summary["slowdown"]["p99"]

Times are in picoseconds in tables and summaries (names end in ``_ps``), in seconds where a function takes or gives a
number of its own; sizes are in bytes, rates in bit/s.
"""

from netloom._driven import Completion, Simulation
from netloom._error import Problem, ScenarioError, SimulationError
from netloom._inputs import flow_list, network, sizes, traffic_matrix
from netloom._netloom import Scenario, Table, __version__
from netloom._outcome import Outcome, Summary
from netloom._route import Route
from netloom._run import run
from netloom._study import Study
from netloom._topology import Topology, topology

# What users see is called as they import it, in tracebacks and pickles too.
for _public in (
    Completion,
    Outcome,
    Problem,
    Route,
    ScenarioError,
    Simulation,
    SimulationError,
    Study,
    Summary,
    Topology,
):
    _public.__module__ = __name__

__all__ = [
    "Completion",
    "Outcome",
    "Problem",
    "Route",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "SimulationError",
    "Study",
    "Summary",
    "Table",
    "Topology",
    "__version__",
    "flow_list",
    "network",
    "run",
    "sizes",
    "topology",
    "traffic_matrix",
]
