"""What docs/tutorial/own-scheme.md says about additions, applied to a copy of the sources."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial" / "own-scheme.md").read_text()
SOURCES = [
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "benches",
    "python",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "README.md",
]


def blocks(heading):
    """The Rust of a section, block by block."""
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    return re.findall(r"```rust\n(.*?)```", section, re.DOTALL)


def insert(path, before, line):
    text = path.read_text()
    assert text.count(before) == 1, f"{path} has no place for {line}"
    path.write_text(text.replace(before, line + before))


@pytest.fixture(scope="module")
def copy():
    """The folder of the copy, whose files keep their times, so that cargo builds again only what has changed."""
    copy = ROOT / "target" / "own-scheme"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("target", "node_modules"))
        elif source.exists():
            shutil.copy2(source, copy / name)
    return copy


def run(copy, test, source):
    (copy / "crates" / "sim" / "tests" / f"{test}.rs").write_text(source)
    subprocess.run(
        ["cargo", "test", "--profile", "checked", "--quiet", "-p", "netloom-sim", "--test", test],
        cwd=copy,
        # Not that of the sources, whose builds cargo could take for those of the copy.
        env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target" / "own-scheme-target")},
        check=True,
    )


def test_the_balancer_is_one_file_and_three_lines(copy):
    scheme, lists, machine, test = blocks("A balancer whose switches signal each other")
    module, entry = lists.splitlines()
    routing = copy / "crates" / "routing" / "src"
    (routing / "granularity" / "leave_busy.rs").write_text(scheme)
    insert(routing / "granularity" / "mod.rs", "pub mod packet;\n", module + "\n")
    insert(routing / "granularity" / "mod.rs", '            "conweave" =>', f"            {entry}\n")
    insert(routing / "path_selector" / "machines.rs", "    conga: Leaf,\n", f"    {machine}")
    run(copy, "leave_busy", test)


def test_the_protocol_is_one_folder_and_an_entry(copy):
    declaration, at_hosts, entry, test = blocks("A protocol of your own")
    protocol = copy / "crates" / "sim" / "src" / "protocol"
    (protocol / "announce").mkdir()
    (protocol / "announce" / "mod.rs").write_text(declaration)
    (protocol / "announce" / "host.rs").write_text(at_hosts)
    insert(protocol / "mod.rs", "pub(crate) mod at_hosts;\n", "pub(crate) mod announce;\n")
    insert(protocol / "mod.rs", "            pulls::Pulls:", f"            {entry}")
    run(copy, "announce", test)


def test_a_topology_and_a_workload_are_a_file_each_and_an_entry(copy):
    family, pattern, lines, test = blocks("A topology, and a workload")
    lines = lines.splitlines(keepends=True)
    families = copy / "crates" / "topology" / "src" / "families"
    (families / "ring.rs").write_text(family)
    insert(families / "mod.rs", "mod slim_fly;\n", lines[0])
    insert(families / "mod.rs", "pub use slim_fly::", lines[1])
    insert(families.parent / "topology.rs", '        "slim-fly" =>', " " * 8 + lines[2])
    patterns = copy / "crates" / "workload" / "src" / "pattern"
    (patterns / "next.rs").write_text(pattern)
    insert(patterns / "mod.rs", "mod ns3_flows;\n", lines[3])
    insert(patterns / "mod.rs", "pub use ns3_flows::", lines[4])
    insert(patterns / "mod.rs", '        "ns3-flows" =>', " " * 8 + lines[5])
    run(copy, "ring", test)
