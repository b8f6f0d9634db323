"""What the documentation shows is what happens."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs" / "build")]
import book
import picture
import pictures


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_sample_in_the_readme_is_real(tmp_path):
    sample = picture.SAMPLE.search(picture.README.read_text()).group()
    assert sample == picture.compared(tmp_path / "out"), "`make picture` writes it anew"
    drawn = picture.PICTURE.read_text()
    assert drawn.startswith("<svg") and all(
        f">{scheme}<" in drawn for scheme in ["ecmp", "spray", "letflow", "flowcut"]
    )


def test_the_tutorial_runs(tmp_path):
    [scenario] = blocks("docs/tutorial/own-scenario.md", "toml")
    [study] = blocks("docs/tutorial/own-study.md", "toml")
    (tmp_path / "mine.toml").write_text(scenario)
    (tmp_path / "mine-study.toml").write_text(study)

    def run(*arguments):
        return subprocess.run(
            [NETLOOM, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    # The one that the page explains.
    shown = run("run", "mine.toml")
    assert shown.count("warning") == 1 and "transport.congestion.initial_window: a first window" in shown
    assert run("report", "runs/mine") == "report in runs/mine/report.html\n"
    assert "A gap of 20 us" in run("study", "mine-study.toml", "--out", "out")


def test_a_scheme_in_two_words(tmp_path):
    [routing] = blocks("docs/tutorial/own-scheme.md", "toml")
    (tmp_path / "s.toml").write_text(routing)
    explained = subprocess.run(
        [NETLOOM, "explain", tmp_path / "s.toml"], check=True, capture_output=True, text=True
    ).stdout
    assert 'kind = "least-loaded"' in explained


WRITTEN = re.findall(r'kind = "([a-z0-9-]+)"', (ROOT / "docs" / "tutorial" / "coming-from.md").read_text())


@pytest.mark.parametrize("kind", sorted(set(WRITTEN)))
def test_what_others_are_told_to_write_exists(kind):
    subprocess.run([NETLOOM, "list", kind], check=True, capture_output=True)


def done(command, folder, **options):
    """Runs a command to its end; it has to succeed."""
    ended = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, **options)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "docs").rglob("*.md")
    if "decisions" not in page.parts and not page.name.startswith("studies-")
)

#: The files that scenarios of a page name, by the language of the block that shows them.
FILES = {"csv": "flows.csv", "text": "step.goal"}

#: Commands that take minutes, need another machine, or stand for any file of the reader's.
NOT_RUN = re.compile(
    r"studies/|SLURM|/shared/|--dask|fig\.toml|\b[A-Z]{3,}\b|mine|runs/NAME|config\.txt|s\.toml|gpt\.toml"
)

#: Scenarios that take minutes: checked, but not run.
LONG = re.compile(r'preset = "gpt-13b-like"|size = "256MB"')

#: Scenarios of traces and clusters in files that are not in the repository; `crates/cli/tests/astra_sim.rs` and the tests of `crates/scenario` make some
#: and run them.
OF_FILES = re.compile(r'kind = "(astra-sim|infragraph|simai|simai-topology)"')


def folder_of(page, tmp_path):
    """A folder in which a page's commands can run: the examples, and the files that its blocks show."""
    for name in ["examples", "studies"]:
        (tmp_path / name).symlink_to(ROOT / name)
    for language, name in FILES.items():
        for block in blocks(page, language):
            (tmp_path / name).write_text(block)
    return tmp_path


SHOWN = [(page, i) for page in PAGES for i, _ in enumerate(blocks(page, "toml"))]


@pytest.mark.parametrize(("page", "index"), SHOWN)
def test_every_scenario_and_study_is_accepted(page, index, tmp_path):
    block = blocks(page, "toml")[index]
    if OF_FILES.search(block):
        pytest.skip("files that are not in the repository")
    folder = folder_of(page, tmp_path)
    # A study that names a scenario of the page before it runs that one, or any.
    for name in re.findall(r'^scenario = "(.*?)"', block, re.MULTILINE):
        [*_, scenario] = blocks(page, "toml")[:index] or ["[topology]\nk = 4\n"]
        (folder / name).write_text("" if "scenario =" in scenario else scenario)
    (folder / "shown.toml").write_text(block)
    is_study = re.search(r"^\[\[(axis|claims|tables)\]\]|^\[analysis\]", block, re.MULTILINE)
    if is_study:
        fragment = not re.search(r"^(scenario =|\[analysis\]|\[scenario\])", block, re.MULTILINE)
        if fragment:
            pytest.skip("a part of a study, which has no cells of its own")
        command = ["study", "shown.toml", "--small", "--shard", "1/100000", "--out", "out"]
    else:
        command = ["explain", "shown.toml"]
    done([NETLOOM, *command], folder)


HOW_TO = [page for page in PAGES if page.startswith(("docs/howto/", "docs/tutorial/"))] + [
    "docs/flow-control.md"
]


@pytest.mark.parametrize("page", [page for page in HOW_TO if "tutorial" not in page])
def test_scenarios_of_how_to_pages_run(page, tmp_path):
    folder = folder_of(page, tmp_path)
    for i, block in enumerate(blocks(page, "toml")):
        (folder / f"scenario{i}.toml").write_text(block)
        command = ["explain"] if LONG.search(block) else ["run", "--strict"]
        done([NETLOOM, *command, f"scenario{i}.toml"], folder)


def commands(page):
    """What a page types, without the comments beside it."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    typed = [line[2:].split("  #")[0].strip() for line in lines if line.startswith("$ netloom")]
    return [line for line in typed if not NOT_RUN.search(line)]


@pytest.mark.parametrize("page", [page for page in [*HOW_TO, "docs/scenario.md"] if commands(page)])
def test_commands_of_a_page_run(page, tmp_path):
    folder = folder_of(page, tmp_path)
    for line in commands(page):
        done(f"{NETLOOM} {line.removeprefix('netloom ')}", folder, shell=True)


#: Blocks that need a cluster.
CLUSTER = re.compile(r"Client|dask")


@pytest.mark.parametrize("page", ["docs/python.md", "docs/howto/figures.md", "docs/outcome.md"])
def test_python_of_a_page_runs(page, tmp_path):
    folder = folder_of(page, tmp_path)
    parts = [block for block in blocks(page, "python") if not CLUSTER.search(block)]
    assert parts
    if page == "docs/outcome.md":
        subprocess.run([NETLOOM, "run", "examples/incast.toml", "--out", "out"], cwd=folder, check=True)
    (folder / "page.py").write_text("\n".join(["import matplotlib", 'matplotlib.use("agg")', *parts]))
    environment = os.environ | {"NETLOOM_DATA": str(tmp_path / "data")}
    done([sys.executable, "page.py"], folder, env=environment)


@pytest.fixture(scope="module")
def generated():
    return book.generated()


def test_the_page_of_the_python_package_has_all_of_it(generated):
    package = (ROOT / "python" / "netloom" / "__init__.py").read_text()
    names = re.findall(r'^    "(\w+)",$', package, re.MULTILINE)
    assert len(names) > 15
    for name in set(names) - {"__version__"}:
        assert re.search(rf"^##+ `{name}\b", generated["api.md"], re.MULTILINE), name
    assert "### `run(scenario" in generated["api.md"], "not the one of the command line"
    assert "from_file(" in generated["api.md"] and "Reads a scenario file." in generated["api.md"]


def test_the_reference_has_a_page_for_every_kind(generated):
    listed = json.loads(subprocess.run([NETLOOM, "list", "--json"], check=True, capture_output=True).stdout)
    pages = [page.rsplit("/", 1)[-1] for page in generated if page.startswith("reference/")]
    missing = {entry["name"] for entry in listed if f"{entry['name']}.md" not in pages}
    # What is no kind stands on the page of its table.
    assert missing <= {
        "workload-options",
        "servers",
        "stragglers",
        "fabric",
        "routing",
        "transport",
        "measure",
    }, missing


#: Kinds whose defaults alone say too little: an arrival process needs an end, a fault its links.
INCOMPLETE = {
    "faults/cut.md",
    "faults/degrade.md",
    "faults/loss.md",
    "workload/poisson.md",
    "workload/uniform.md",
}


def test_tables_of_kinds_are_what_netloom_reads(generated, tmp_path):
    """The table that a page shows with a kind's defaults is accepted as it stands, unless a field is required."""
    refused, tried = set(), 0
    for page, text in generated.items():
        shown = re.search(r"## With its defaults\n\n```toml\n(.*?)```", text, re.DOTALL)
        is_scenario = page.startswith(("reference/topology/", "reference/workload/", "reference/faults/"))
        if not shown or "(required)" in shown[1] or not is_scenario:
            continue
        (tmp_path / "shown.toml").write_text(shown[1])
        tried += 1
        command = [NETLOOM, "explain", "shown.toml"]
        if subprocess.run(command, check=False, cwd=tmp_path, capture_output=True).returncode != 0:
            refused.add(page.removeprefix("reference/"))
    assert refused == INCOMPLETE and tried > 20


@pytest.mark.parametrize("name", pictures.DRAWINGS)
def test_pictures_are_what_netloom_says(name):
    assert (pictures.FOLDER / name).read_text() == pictures.DRAWINGS[name](), "`make picture` draws it again"


def test_decisions_are_listed(generated):
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert len(pages) > 50 and all(f"({page.name})" in generated["decisions/index.md"] for page in pages)
