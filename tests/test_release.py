"""The version and what the package registries ask for."""

import re
from pathlib import Path

import tomllib

import netloom

ROOT = Path(__file__).parents[1]
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
VERSION = CARGO["package"]["version"]


def test_the_version_is_the_same_everywhere():
    assert netloom.__version__ == VERSION
    own = {name: entry for name, entry in CARGO["dependencies"].items() if name.startswith("netloom-")}
    assert len(own) > 10
    assert {name: entry["version"] for name, entry in own.items()} == dict.fromkeys(own, VERSION)
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == VERSION
    released = re.search(r"^date-released: (.+)$", citation, re.MULTILINE)[1]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\d.+)$", changelog, re.MULTILINE)[1] == f"{VERSION} - {released}"


def test_every_crate_says_what_it_is():
    manifests = sorted((ROOT / "crates").glob("*/Cargo.toml"))
    assert len(manifests) > 10
    for manifest in manifests:
        package = tomllib.loads(manifest.read_text())["package"]
        assert package["description"], manifest
        for field in ["version", "license", "keywords", "categories"]:
            assert package[field] == {"workspace": True}, (manifest, field)
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
            assert (manifest.parent / licence).read_text() == (ROOT / licence).read_text(), manifest


def test_the_command_is_the_crate_that_users_install():
    package = tomllib.loads((ROOT / "crates/cli/Cargo.toml").read_text())["package"]
    assert package["name"] == "netloom"
    assert (ROOT / "crates/cli" / package["readme"]).samefile(ROOT / "README.md")
