"""The schema that editors use accepts every scenario in the repository, and refuses mistakes."""

import json
import subprocess
from pathlib import Path

import pytest
import tomllib
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
SCENARIOS = sorted(path for path in (ROOT / "examples").glob("*.toml") if "[[axis]]" not in path.read_text())


STUDIES = sorted(
    {*(ROOT / "studies").glob("*/*.toml"), *(ROOT / "examples").glob("*.toml")}.difference(SCENARIOS)
)


def made(*files):
    printed = subprocess.run([NETLOOM, "schema", *files], check=True, capture_output=True)
    schema = json.loads(printed.stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def validator():
    return made()


@pytest.fixture(scope="module")
def study_validator():
    return made("study")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example_is_valid(validator, path):
    validator.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_what_explain_prints_is_valid(validator, path):
    printed = subprocess.run([NETLOOM, "explain", path], check=True, capture_output=True, text=True)
    validator.validate(tomllib.loads(printed.stdout))


@pytest.mark.parametrize(
    "text",
    [
        "sede = 3",
        "seed = -1",
        "[topology]\nkind = 'fat-treee'",
        "[topology]\nkind = 'fat-tree'\nkk = 3",
        "[routing]\npreset = 'ecpm'",
        "[routing]\nselector = { kind = 'hash', d = 3 }",
        "[workload]\nkind = 'mix'\nparts = [{ kind = 'incast', sender = 3 }]",
        "faults = [{ kind = 'cutt' }]",
        "[measure]\nsampel = '1us'",
    ],
)
def test_mistakes_are_refused(validator, text):
    assert list(validator.iter_errors(tomllib.loads(text)))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_study_is_valid(study_validator, path):
    study_validator.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "scenario = {}",
        "title = 't'",
        "title = 't'\nscenario = {}\nanalysis = {}",
        "title = 't'\nscenario = { sede = 1 }",
        "title = 't'\nscenario = {}\nrepetitions = 0",
        "title = 't'\nscenario = {}\naxis = [{ name = 'a', field = 'seed' }]",
        "title = 't'\nscenario = {}\naxis = [{ name = 'a', cases = [{ set = {} }] }]",
        "title = 't'\nscenario = {}\nclaims = [{ id = 'c', text = 't', expression = '1 < 2', use = 'gaet' }]",
        "title = 't'\nanalysis = { measurement = { kind = 'diversty' } }",
    ],
)
def test_mistakes_in_studies_are_refused(study_validator, text):
    assert list(study_validator.iter_errors(tomllib.loads(text)))


def test_scenarios_and_studies_were_found():
    assert len(SCENARIOS) >= 4
    assert len(STUDIES) >= 20
