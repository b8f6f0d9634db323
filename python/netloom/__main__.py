"""``python -m netloom study FILE``: a study on a Dask cluster, or here."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from netloom import ScenarioError, Study
from netloom._error import refused


def main() -> int:
    """Runs the study and prints its claims; 1 if a gate does not hold or a cell failed, 2 if the study is wrong."""
    parser = argparse.ArgumentParser(prog="python -m netloom", description=__doc__)
    commands = parser.add_subparsers(required=True)
    study = commands.add_parser("study", help="run a study file")
    study.add_argument("file", help="the study file")
    study.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    study.add_argument(
        "--out", metavar="FOLDER", help="where the results go; default as by the netloom command"
    )
    form = study.add_mutually_exclusive_group()
    form.add_argument("--small", action="store_true", help="run the small form")
    form.add_argument("--full", action="store_true", help="run the full form")
    study.add_argument("--workers", type=int, metavar="N", help="cells at a time, if not on a cluster")
    arguments = parser.parse_args()
    # What batch systems send ends a study as Ctrl-C does.
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    try:
        return run(arguments)
    except ScenarioError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def connected(address: str) -> Any:
    """The client of the scheduler at an address."""
    if not address:
        # Dask would start a cluster of its own here.
        raise refused("--dask", "expected the address of a scheduler, such as tcp://host:8786, found nothing")
    try:
        from distributed import Client
    except ImportError as error:
        raise RuntimeError("--dask needs Dask: pip install 'netloom[dask]'") from error
    try:
        return Client(address, timeout="10s")
    except ValueError as error:
        message = f"expected the address of a scheduler, such as tcp://host:8786: {error}"
        raise refused("--dask", message) from error


def run(arguments: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    study = Study.from_file(arguments.file, small=arguments.small, full=arguments.full)
    client = None
    if arguments.dask is not None:
        client = connected(arguments.dask)
    try:
        study.run(arguments.out, workers=arguments.workers, client=client)
    finally:
        if client is not None:
            client.close()
    for claim in study.claims:
        verdict = claim["verdict"].replace("-", " ")
        print(f"{claim['id']}  {verdict:<14}  {claim['measured']}  {claim['text']}")
    print(f"results in {study.folder}")
    return int(any(_fails(claim) for claim in study.claims))


def _fails(claim: dict) -> bool:
    """Whether a gate is not met: its verdict is another than "holds", or where the means decide, these do not satisfy it."""
    is_met = claim["mean_holds"] is True if claim["needs"] == "mean" else claim["verdict"] == "holds"
    return claim["gate"] and not is_met


if __name__ == "__main__":
    sys.exit(main())
