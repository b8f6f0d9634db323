"""Installs and tries what `make dist` built, without Rust and with nothing else that it might lean on: `make dist-test`.

Every binary runs in a folder of its own as the root of its file system, so that it finds no library, no shell and no configuration; without the right
to do so, with an empty environment. That of another processor runs under qemu. The wheel is installed for every Python that is found.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import dist

SCENARIO = dist.ROOT / "examples" / "permutation.toml"
#: e_machine in the header of an ELF file.
ELF = {"x86_64": 62, "aarch64": 183}
RUN = "import netloom; print(netloom.__version__); print(netloom.run({'topology': {'kind': 'fat-tree', 'k': 4}}))"


def run(command, folder, **options):
    """What a command prints in an environment in which nothing is set and no program is found."""
    environment = {"HOME": str(folder), "PATH": str(folder), "TMPDIR": str(folder)} | options.pop("env", {})
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def elf(data):
    """Processor, whether a dynamic linker is asked for, of an ELF file of 64 bits."""
    assert data[:5] == b"\x7fELF\x02", "not an ELF file of 64 bits"
    machine = int.from_bytes(data[18:20], "little")
    table, size, count = (
        int.from_bytes(data[at : at + length], "little") for at, length in [(32, 8), (54, 2), (56, 2)]
    )
    kinds = {int.from_bytes(data[table + k * size : table + k * size + 4], "little") for k in range(count)}
    return machine, 3 in kinds


def check_paths(data):
    """That a binary does not depend on where it was built."""
    for place in [dist.ROOT, Path.home() / ".cargo", Path.home() / ".rustup"]:
        assert f"{place}/".encode() not in data, f"the binary names {place}"


def check_sums(folder):
    """Every file is listed with its checksum, and no other."""
    listed = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert set(listed) == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    for name, expected in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name


def check_archive(path, machine):
    """What an archive holds: a static binary for the processor, documents of every command, every crate with its licence."""
    with tarfile.open(path) as tar:
        files = {}
        for entry in tar.getmembers():
            top, _, inside = entry.name.partition("/")
            assert top == path.name.removesuffix(".tar.gz") and ".." not in inside
            files[inside] = (tar.extractfile(entry).read(), entry.mode)
    data, mode = files["netloom"]
    assert mode == 0o755 and elf(data) == (ELF[machine], False), "the binary is not static"
    check_paths(data)
    assert {"README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "examples/permutation.toml"} <= set(
        files
    )
    assert {f"completions/{name}" for name in dist.SHELLS.values()} <= set(files)
    pages = {name for name in files if name.startswith("man/man1/netloom")}
    assert {f"man/man1/netloom{command}.1" for command in ["", "-run", "-study", "-report"]} <= pages and len(
        pages
    ) > 20, pages
    check_sbom(json.loads(files["netloom.cdx.json"][0]))
    return files


def check_sbom(bill):
    """The list has what every build needs, and each crate with version, licence and checksum."""
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == dist.VERSION
    parts = {part["name"]: part for part in bill["components"]}
    assert {"clap", "serde", "mimalloc", "libmimalloc-sys", "netloom-engine", "netloom-fabric"} <= set(parts)
    assert not {"proptest", "loom", "pyo3", "netloom-capi"} & set(parts), "crates that are not in the binary"
    for name, part in parts.items():
        assert part["licenses"] and (part.get("hashes") or name.startswith("netloom-")), name
    known = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert known == {entry["ref"] for entry in bill["dependencies"]}
    assert all(set(entry["dependsOn"]) <= known for entry in bill["dependencies"])


def extract(path, folder):
    """Unpacks an archive."""
    with tarfile.open(path) as tar:
        tar.extractall(folder, filter="data")
    return folder / path.name.removesuffix(".tar.gz")


def try_binary(path, machine, folder):
    """Runs the command of an archive: a run, a study, a report. Returns what must not depend on the processor."""
    root = extract(path, folder)
    emulator = [] if machine == platform.machine() else [shutil.which(f"qemu-{machine}-static") or ""]
    if emulator == [""]:
        print(
            f"{machine}: not run, as there is no qemu-{machine}-static (Debian, Ubuntu: apt-get install qemu-user-static)"
        )
        return None
    if emulator:
        shutil.copy(emulator[0], root / "emulator")
    inside = ["/emulator", "/netloom"] if emulator else ["/netloom"]
    bare = ["unshare", "--user", "--map-root-user", "--root", str(root), "--wd", "/"]
    may = subprocess.run([*bare, *inside, "--version"], capture_output=True, check=False).returncode == 0
    start = [shutil.which("unshare"), *bare[1:], *inside] if may else [f"{root}{name}" for name in inside]
    options = {"env": {"HOME": "/", "PATH": "/", "TMPDIR": "/"}} if may else {}
    ask = lambda *arguments: run([*start, *arguments], root, **options)
    assert ask("--version").strip() == f"netloom {dist.VERSION}"
    assert "slowdown" in ask("run", "examples/permutation.toml", "--out", "one")
    ask("init", "study")
    assert "holds" in ask("study", "study.toml", "--out", "nine")
    assert "nine/report.html" in ask("report", "nine")
    assert (root / "nine" / "report.html").stat().st_size > 1_000_000
    ask("report", "nine", "--figure", "fct-p99.svg")
    assert "FCT p99" in (root / "fct-p99.svg").read_text()
    print(
        f"{machine}: runs {'with its archive as the whole file system' if may else 'with an empty environment'}{' under qemu' if emulator else ''}"
    )
    # Folders of cells end in a fingerprint of the program, which differs between processors.
    place = lambda file: re.sub(r"\.[0-9a-f]{16}/", "/", str(file.relative_to(root)))
    return {place(file): file.read_bytes() for file in root.rglob("flows.parquet")}


def check_wheel(path, machine):
    """What a wheel holds and asks for."""
    [platforms] = re.fullmatch(rf"netloom-{re.escape(dist.VERSION)}-cp310-abi3-(.*)\.whl", path.name).groups()
    assert f"manylinux_2_17_{machine}" in platforms.split("."), path.name
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        names = wheel.namelist()
        [library] = [name for name in names if name.endswith(".so")]
        assert elf(wheel.read(library))[0] == ELF[machine]
        check_paths(wheel.read(library))
        assert {"netloom/py.typed", f"netloom-{dist.VERSION}.dist-info/licenses/LICENSE-MIT"} <= set(names), (
            names
        )


def pythons():
    """Every Python from 3.10 that this machine has: on the path, or from pyenv."""
    found = {}
    places = [Path(part) for part in os.environ["PATH"].split(os.pathsep)] + sorted(
        Path.home().glob(".pyenv/versions/3.*/bin")
    )
    for place in places:
        for python in sorted(place.glob("python3.[0-9]*")):
            match = re.fullmatch(r"python3\.(\d+)", python.name)
            if (
                match
                and int(match[1]) >= 10
                and subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode
                == 0
            ):
                found.setdefault(int(match[1]), python)
    return [found[minor] for minor in sorted(found)]


def try_wheel(path, folder):
    """Installs a wheel in an empty environment and runs a simulation."""
    tried = []
    for python in pythons():
        place = folder / python.name
        run([python, "-m", "venv", place], folder)
        run([place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", path], folder)
        assert run([place / "bin" / "python", "-c", RUN], folder).split()[0] == dist.VERSION
        tried.append(python.name)
    assert tried, "no Python from 3.10"
    print(f"{path.name}: installed and run by {', '.join(tried)}")


def check(folder=dist.OUT):
    """All that takes seconds: checksums, and what archives and wheels hold."""
    check_sums(folder)
    for machine in dist.MACHINES:
        check_archive(archive_of(folder, machine), machine)
        check_wheel(wheel_of(folder, machine), machine)


def archive_of(folder, machine):
    """The archive for a processor."""
    return folder / f"netloom-{dist.VERSION}-{dist.binary_target(machine)}.tar.gz"


def wheel_of(folder, machine):
    """The wheel for a processor."""
    [wheel] = folder.glob(f"*{machine}.whl")
    return wheel


def main():
    """Checks and tries everything."""
    if not (dist.OUT / "SHA256SUMS").exists():
        sys.exit(f"there is no {dist.OUT.relative_to(dist.ROOT)}: make dist builds it")
    check()
    print("checksums, archives and wheels: as they should be")
    with tempfile.TemporaryDirectory() as folder:
        results = {}
        for machine in dist.MACHINES:
            results[machine] = try_binary(archive_of(dist.OUT, machine), machine, Path(folder))
        ran = [flows for flows in results.values() if flows is not None]
        assert all(flows == ran[0] for flows in ran) and ran[0], "results differ between processors"
        if len(ran) > 1:
            print("both processors give the same bytes")
        try_wheel(wheel_of(dist.OUT, platform.machine()), Path(folder))


if __name__ == "__main__":
    main()
