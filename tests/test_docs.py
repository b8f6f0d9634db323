"""What the documentation shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
sys.path.insert(0, str(ROOT / "docs"))
import picture


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
