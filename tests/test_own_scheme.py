"""What docs/tutorial/own-scheme.md says of a balancer of one's own, done with a copy of the sources."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial" / "own-scheme.md").read_text()
SECTION = PAGE.split("## A balancer whose switches signal each other")[1].split("\n## ")[0]


def insert(path, before, line):
    text = path.read_text()
    assert text.count(before) == 1, f"{path} has no place for {line}"
    path.write_text(text.replace(before, line + before))


def test_the_balancer_of_the_page_is_one_file_and_three_lines():
    copy = ROOT / "target" / "own-scheme"
    shutil.rmtree(copy, ignore_errors=True)
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "crates",
        "benches",
        "python",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
    ]:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("target", "node_modules"))
        elif source.exists():
            copy.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy / name)
    scheme, lists, machine, test = re.findall(r"```rust\n(.*?)```", SECTION, re.DOTALL)
    module, entry = lists.splitlines()
    routing = copy / "crates" / "routing" / "src"
    (routing / "granularity" / "leave_busy.rs").write_text(scheme)
    insert(routing / "granularity" / "mod.rs", "pub mod packet;\n", module + "\n")
    insert(routing / "granularity" / "mod.rs", '        "conweave" =>', f"        {entry}\n")
    insert(routing / "path_selector" / "machines.rs", "    conga: Leaf,\n", f"    {machine}")
    (copy / "crates" / "sim" / "tests" / "leave_busy.rs").write_text(test)
    subprocess.run(
        ["cargo", "test", "--profile", "checked", "--quiet", "-p", "netloom-sim", "--test", "leave_busy"],
        cwd=copy,
        # Not that of the sources, whose builds cargo could take for those of the copy.
        env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target" / "own-scheme-target")},
        check=True,
    )
