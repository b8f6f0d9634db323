"""Why a packet goes where it goes."""

from __future__ import annotations

from collections.abc import Sequence


class Route(Sequence):
    """The path of a packet through an idle fabric: one dict per switch with ``at``, ``candidates``, ``takes``, ``why``."""

    def __init__(self, title: str, hops: list[dict]) -> None:
        """A route with its title and hops."""
        self.title = title
        self.hops = hops

    def __len__(self) -> int:
        """Number of switches along the path."""
        return len(self.hops)

    def __getitem__(self, index):
        """The hop at a switch."""
        return self.hops[index]

    def __repr__(self) -> str:
        """The route as a table."""
        rows = [["at", "candidates", "takes", "why"]]
        for hop in self.hops:
            shown, more = hop["candidates"][:8], len(hop["candidates"]) - 8
            candidates = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
            rows.append([hop["at"], candidates, hop["takes"], hop["why"]])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *lines])
