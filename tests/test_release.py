"""The version and what the package registries ask for."""

import json
import re
import sys
import tarfile
from pathlib import Path

import pytest
import tomllib

import netloom

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "release"))
import check
import dist

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


@pytest.mark.parametrize("machine", dist.MACHINES)
def test_the_list_of_crates_names_what_is_in_the_binary(machine):
    """The checks of it fail where a crate is missing, has no licence, or is not compiled in."""
    bill = json.loads(dist.sbom(dist.binary_target(machine)))
    check.check_sbom(bill)
    names = {part["name"] for part in bill["components"]}
    assert len(names) > 100 and "linux-raw-sys" in names and "windows-sys" not in names
    for spoil in [
        lambda parts: parts.pop(),
        lambda parts: parts[0].update(licenses=[]),
        lambda parts: parts.append(parts[0] | {"name": "proptest"}),
    ]:
        spoilt = json.loads(json.dumps(bill))
        spoil(spoilt["components"])
        with pytest.raises(AssertionError):
            check.check_sbom(spoilt)


def test_an_archive_holds_everything_and_is_the_same_twice(tmp_path, monkeypatch):
    """With the binary of `make build`, which is not static: the check of a release's archive says so."""
    monkeypatch.setattr(dist, "OUT", tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    netloom_command, documents = ROOT / "target" / "release" / "netloom", tmp_path / "documents"
    dist.documents(netloom_command, documents)
    bill = dist.sbom(dist.binary_target("x86_64"))
    archives = [dist.archive("netloom", netloom_command, documents, bill).read_bytes() for _ in range(2)]
    assert archives[0] == archives[1]
    with tarfile.open(tmp_path / "netloom.tar.gz") as tar:
        assert {entry.mtime for entry in tar.getmembers()} == {1700000000}
        assert {"netloom/man/man1/netloom-run.1", "netloom/completions/_netloom"} <= set(tar.getnames())
    with pytest.raises(AssertionError, match="not static"):
        check.check_archive(tmp_path / "netloom.tar.gz", "x86_64")


def test_checksums_are_of_all_files(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    dist.sums(tmp_path)
    check.check_sums(tmp_path)
    (tmp_path / "b").write_text("3")
    with pytest.raises(AssertionError):
        check.check_sums(tmp_path)
    dist.sums(tmp_path)
    (tmp_path / "c").write_text("4")
    with pytest.raises(AssertionError):
        check.check_sums(tmp_path)


@pytest.mark.skipif(not (dist.OUT / "SHA256SUMS").exists(), reason="`make dist` has not been run")
def test_a_release_that_was_built_is_as_it_should_be():
    """Checksums, archives and wheels; `make dist-test` also installs and runs them."""
    check.check()
