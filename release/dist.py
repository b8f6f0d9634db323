"""Builds what a release consists of, into target/dist/netloom-VERSION: `make dist`.

For x86-64 and aarch64: an archive with the command as a static binary, its manual pages and completions, and a wheel of the Python package. For all:
the list of the crates in the binary (an SBOM in CycloneDX) and SHA256SUMS. Neither the folder of the checkout nor the time of the build is in any of them.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
#: What a first build leaves out.
FEATURES = ("--features", "png")
OUT = ROOT / "target" / "dist" / f"netloom-{VERSION}"
MACHINES = ["x86_64", "aarch64"]
#: The oldest glibc that the standard library of Rust supports.
MANYLINUX = "manylinux2014"
SHELLS = {"bash": "netloom.bash", "zsh": "_netloom", "fish": "netloom.fish"}


def binary_target(machine):
    """Static, with musl as its C library: runs on any Linux."""
    return f"{machine}-unknown-linux-musl"


def wheel_target(machine):
    """Python's extension modules are shared libraries, for a Python that uses glibc."""
    return f"{machine}-unknown-linux-gnu"


def epoch():
    """Seconds since 1970 of all that carries a date: $SOURCE_DATE_EPOCH, or when the commit was made."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    return int(output("git", "log", "-1", "--format=%ct"))


def output(*command):
    """What a command prints; it runs in the root of the repository."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def environment():
    """For builds whose bytes depend neither on the folder of the checkout nor on the time."""
    cargo_home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    prefixes = {cargo_home: "/cargo", ROOT: "/netloom"}
    # The profile `dist` inherits from `release`, which a caller may have changed for quick builds.
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_RELEASE_")
    }
    return kept | {
        "CARGO_INCREMENTAL": "0",
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}={new}" for old, new in prefixes.items()),
        # The tools of this Python environment, Zig among them, come first.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={old}={new}" for old, new in prefixes.items()),
        "SOURCE_DATE_EPOCH": str(epoch()),
    }


def build(*command):
    """Runs a build, which says what it does."""
    print("$", *command, flush=True)
    subprocess.run(command, cwd=ROOT, check=True, env=environment())


def add_targets(targets):
    """Installs the standard library of Rust for what is built, where rustup can."""
    if not shutil.which("rustup"):
        return
    missing = set(targets) - set(output("rustup", "target", "list", "--installed").split())
    if missing:
        build("rustup", "target", "add", *sorted(missing))


def binary(machine):
    """Builds the command."""
    target = binary_target(machine)
    build(
        "cargo",
        "zigbuild",
        "--locked",
        "--profile",
        "dist",
        "--target",
        target,
        "--package",
        "netloom",
        "--bin",
        "netloom",
        *FEATURES,
    )
    return ROOT / "target" / target / "dist" / "netloom"


def wheel(machine):
    """Builds the Python package, for Python 3.10 and later."""
    build(
        *("maturin", "build", "--locked", "--profile", "dist", "--zig", "--target", wheel_target(machine)),
        *("--compatibility", MANYLINUX, "--out", str(OUT)),
    )


def sbom(target):
    """The crates that are compiled into the command for a target, as CycloneDX 1.5."""
    # `cargo tree` knows the features of this build, `cargo metadata` only those of the whole workspace; licences are in the latter.
    tree = output(
        "cargo",
        "tree",
        "--locked",
        "--package",
        "netloom",
        *FEATURES,
        "--edges",
        "normal",
        "--target",
        target,
        "--prefix",
        "none",
        "--format",
        "{p}",
    )
    used = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(
        output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target)
    )
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock}
    packages = {
        package["id"]: package
        for package in metadata["packages"]
        if (package["name"], f"v{package['version']}") in used
    }

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package):
        kind = "application" if package["name"] == "netloom" else "library"
        entry = {
            "type": kind,
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
        }
        if checksum := checksums[package["name"], package["version"]]:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if licence := package["license"]:
            # Older crates write "/" for "OR", which SPDX does not know.
            entry["licenses"] = [{"expression": " OR ".join(part.strip() for part in licence.split("/"))}]
        return entry | {"purl": reference(package)}

    components = sorted(
        (component(package) for package in packages.values()), key=lambda entry: entry["bom-ref"]
    )
    dependencies = [
        {
            "ref": reference(packages[node["id"]]),
            "dependsOn": sorted(
                {reference(packages[other]) for other in node["dependencies"] if other in packages}
            ),
        }
        for node in metadata["resolve"]["nodes"]
        if node["id"] in packages
    ]
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": next(entry for entry in components if entry["name"] == "netloom"),
        },
        "components": [entry for entry in components if entry["name"] != "netloom"],
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(whole, sort_keys=True))
    return (
        json.dumps(
            {
                "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
                "serialNumber": f"urn:uuid:{serial}",
            }
            | whole,
            indent=2,
        )
        + "\n"
    )


def documents(netloom, folder):
    """Writes the completions and manual pages of a command that runs on this machine."""
    completions = folder / "completions"
    completions.mkdir(parents=True)
    for shell, name in SHELLS.items():
        (completions / name).write_text(output(netloom, "completions", shell))
    output(netloom, "man", "--out", folder / "man" / "man1")


def archive(name, netloom, folder, bill):
    """Writes NAME.tar.gz: the command, its documents, examples, licences and the list of its crates."""
    files = {"netloom": netloom, **{path.name: path for path in [ROOT / "README.md", ROOT / "CHANGELOG.md"]}}
    files |= {path.name: path for path in ROOT.glob("LICENSE-*")}
    files |= {f"examples/{path.name}": path for path in (ROOT / "examples").glob("*.toml")}
    files |= {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    contents = {inside: path.read_bytes() for inside, path in files.items()} | {
        "netloom.cdx.json": bill.encode()
    }
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for inside, data in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{name}/{inside}")
            entry.size, entry.mtime, entry.mode = len(data), epoch(), 0o755 if inside == "netloom" else 0o644
            tar.addfile(entry, io.BytesIO(data))
    path = OUT / f"{name}.tar.gz"
    path.write_bytes(gzip.compress(inner.getvalue(), mtime=epoch()))
    return path


def sums(folder):
    """Writes SHA256SUMS over all files of a folder, for `sha256sum --check`."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def main():
    """Builds all, or what is chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--machine", choices=MACHINES, action="append", help="only for this kind of processor"
    )
    machines = parser.parse_args().machine or MACHINES
    here = platform.machine()
    if here not in MACHINES:
        parser.error(
            f"completions and manual pages come from the command itself, which does not run on {here}"
        )
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    add_targets([name(machine) for machine in {*machines, here} for name in (binary_target, wheel_target)])
    binaries = {machine: binary(machine) for machine in sorted({*machines, here})}
    folder = ROOT / "target" / "dist" / "documents"
    shutil.rmtree(folder, ignore_errors=True)
    documents(binaries[here], folder)
    for machine in machines:
        target = binary_target(machine)
        archive(f"netloom-{VERSION}-{target}", binaries[machine], folder, sbom(target))
        wheel(machine)
    sums(OUT)
    for path in sorted(OUT.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
