# SPDX-License-Identifier: GPL-2.0-only
"""A figure of one or more panels, its looks, and its files: PDF, SVG, CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from results import Estimate

mpl.rcParams.update({
    "svg.hashsalt": "znsage", "svg.fonttype": "none", "pdf.fonttype": 42, "savefig.bbox": "tight",
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"], "font.size": 8.5,
    "axes.titlesize": 9, "axes.titleweight": "bold", "axes.grid": True, "grid.color": "#e4e4e4",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "lines.linewidth": 1.4, "lines.markersize": 5, "hatch.linewidth": 0.6,
})


class Look(NamedTuple):
    """Tells a series apart in colour, and in grey by its marker, its dashes or its hatch."""

    colour: str
    marker: str
    hatch: str
    dashes: str = "-"
    hollow: bool = False


# A system has one colour, marker and hatch in all figures: the "vibrant" scheme of Paul Tol.
SYSTEMS = {
    "block SSD + TRIM": Look("#ee7733", "^", "////"),
    "block SSD": Look("#707070", "s", "xxxx"),
    "conventional": Look("#707070", "s", "xxxx"),
    "by the host": Look("#707070", "s", "xxxx"),
    "ZNS+": Look("#33bbee", "*", "----"),
    "IZC-H": Look("#33bbee", "P", "...."),
    "ZNS": Look("#009988", "D", "\\\\\\\\"),
    "ZNSwap": Look("#009988", "D", "\\\\\\\\"),
    "small-zone ZNSwap": Look("#ee3377", "v", "++++"),
    "ZNSage (2025)": Look("#cc3311", "p", "||||"),
    "znsage": Look("#0077bb", "o", ""),
}
VARIANTS = {
    "Linux 6.12": "--", "15 % spare": ":", "28 % spare": "--", "of each page": "--", "on the block SSD": "--", "16 dies": "--",
    "at first": ":", "large zones": "-.", "maps in chunks": ":", "1 ms": "-.", "two zones": "--", "150 MB/s a": ":",
    "with its GC": "-.", "even": "--",
}


def look(name: str) -> Look:
    """By the system that the name begins with, and the variant in it."""
    own = SYSTEMS[max((s for s in SYSTEMS if name.startswith(s)), key=len)]
    rest = name.removeprefix("ZNSwap, large zones")
    dashes = [d for word, d in VARIANTS.items() if word in rest]
    return own._replace(dashes=dashes[-1], hollow=True) if dashes else own


class Sheet:
    """A figure. Whatever is drawn is a row of its CSV."""

    def __init__(self, panels: Sequence[str], *, width: float = 3.7, height: float = 2.7) -> None:
        self.figure, axes = plt.subplots(1, len(panels), figsize=(width * len(panels), height), squeeze=False)
        self.axes = list(axes[0])
        self.panels = panels
        self.rows: list[dict[str, Any]] = []
        for axis, title in zip(self.axes, panels):
            axis.set_title(title, loc="left")

    def _note(self, panel: int, name: str, x: Any, kind: str, value: Estimate) -> None:
        row = {"panel": self.panels[panel], "series": name, "x": x, "kind": kind, "value": value.mean}
        self.rows.append({**row, "low": value.low, "high": value.high})

    def line(
        self, panel: int, name: str, points: Iterable[tuple[float, Estimate]], *, markers: bool = True, size: float = 5,
        joined: bool = True,
    ) -> None:
        """Means with their intervals, joined by a line."""
        own, points = look(name), list(points)
        for x, value in points:
            self._note(panel, name, x, "simulated", value)
        xs, means = [x for x, _ in points], [v.mean for _, v in points]
        self.axes[panel].plot(
            xs, means, label=name, color=own.colour, linestyle=own.dashes if joined else "none", markersize=size,
            marker=own.marker if markers else None, markerfacecolor="white" if own.hollow or size > 5 else own.colour,
        )
        self._intervals(panel, points, own.colour)

    def _intervals(self, panel: int, points: Iterable[tuple[float, Estimate]], colour: str) -> None:
        some = [(x, v) for x, v in points if np.isfinite(v.low) and v.low < v.high]
        if some:
            error = np.transpose([(v.mean - v.low, v.high - v.mean) for _, v in some])
            xs, means = [x for x, _ in some], [v.mean for _, v in some]
            self.axes[panel].errorbar(xs, means, yerr=error, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5)

    def span(self, panel: int, name: str, points: Iterable[tuple[float, Estimate, Estimate]]) -> None:
        """The range between two assumptions."""
        own, points = look(name), list(points)
        for x, one, other in points:
            self._note(panel, name, x, "one end", one)
            self._note(panel, name, x, "other end", other)
        ends = [[v.mean for v in side] for side in zip(*((one, other) for _, one, other in points))]
        xs = [x for x, _, _ in points]
        axis = self.axes[panel]
        for side in ends:
            axis.plot(xs, side, color=own.colour, linestyle=own.dashes, linewidth=0.9, marker=own.marker,
                      markerfacecolor="white" if own.hollow else own.colour, markersize=4)
        axis.fill_between(xs, *ends, facecolor=own.colour, alpha=0.16, edgecolor=own.colour, linewidth=0,
                          hatch="///" if own.hollow else None, label=name)

    def published(self, panel: int, points: Iterable[tuple[float, Any]], of: str = "", marker: str = "x") -> None:
        """Published values, or ranges."""
        label = f"published{f' ({of})' if of else ''}"
        own = {"color": "black", "linestyle": "none", "marker": marker, "markersize": 7, "markeredgewidth": 1.6}
        for x, value in points:
            low, high = value if isinstance(value, list) else (value, value)
            self._note(panel, label, x, "published", Estimate((low + high) / 2, low, high))
            if low != high:
                self.axes[panel].plot([x, x], [low, high], color="black", marker="_", markersize=8, label=label)
            else:
                self.axes[panel].plot([x], [low], label=label, zorder=5, **own)

    def bars(
        self,
        panel: int,
        groups: Sequence[str],
        series: Mapping[str, Sequence[Estimate]],
        published: Mapping[str, Sequence[float | None]] = {},
    ) -> None:
        """A group of bars for each name, with published values across them."""
        axis, width = self.axes[panel], 0.84 / len(series)
        for i, (name, values) in enumerate(series.items()):
            own = look(name)
            for g, value in enumerate(values):
                at = g + (i - (len(series) - 1) / 2) * width
                self._note(panel, name, groups[g], "simulated", value)
                axis.bar(at, value.mean, width * 0.9, color="white" if own.hollow else own.colour,
                         edgecolor=own.colour if own.hollow else "white",
                         hatch={"-": own.hatch[:2], "-.": "++"}.get(own.dashes, own.hatch),
                         label=name if g == 0 else None)
                self._intervals(panel, [(at, value)], "black")
                top = value.high if np.isfinite(value.high) else value.mean
                axis.annotate(f"{value.mean:.3g}", (at, max(value.mean, top)), ha="center", va="bottom", fontsize=7,
                              xytext=(0, 2), textcoords="offset points", zorder=9,
                              bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4})
                theirs = published.get(name, [None] * len(groups))[g]
                if theirs is not None:
                    self._note(panel, name, groups[g], "published", Estimate(theirs, theirs, theirs))
                    axis.plot([at - width / 2, at + width / 2], [theirs, theirs], color="black", linewidth=2,
                              label="published", zorder=5)
        axis.set_xticks(range(len(groups)), groups)
        axis.grid(axis="x", visible=False)
        axis.margins(y=0.1)

    def utilization(self, panel: int, ylabel: str, ticks: Sequence[float], log: bool = False) -> None:
        self.label(panel, "device utilization, %", ylabel, ticks=ticks, log=log)

    def label(self, panel: int, x: str, y: str, *, ticks: Sequence[float] = (), log: bool = False) -> None:
        axis = self.axes[panel]
        axis.set(xlabel=x, ylabel=y)
        if len(ticks):
            axis.set_xticks(ticks)
        if log:
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
            axis.yaxis.set_minor_formatter(mpl.ticker.LogFormatter())
        else:
            axis.set_ylim(bottom=0)

    def save(self, folder: Path, name: str, columns: int = 3) -> None:
        """Writes NAME.pdf, .svg and .csv, the same for the same results."""
        known: dict[str, Any] = {}
        for axis in self.axes:
            for handle, label in zip(*axis.get_legend_handles_labels()):
                known.setdefault(label, handle)
        self.figure.tight_layout(w_pad=1.5)
        self.figure.legend(
            known.values(), known.keys(), loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=columns,
            handlelength=3.2, columnspacing=1.4,
        )
        self.figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        self.figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(self.figure)
        svg = folder / f"{name}.svg"
        text = re.sub(r"\s*\n\s*", " ", svg.read_text()).replace("> <", "><")
        svg.write_text(re.sub(r"(\d\.\d\d)\d+", r"\1", text) + "\n")
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
