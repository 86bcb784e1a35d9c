#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Draws the demo: demo.py RESULT.json PICTURE."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = ["#EE7733", "#0077BB", "#009988"]


def draw(demo: dict, to: str) -> None:
    plt.rcParams.update({"svg.hashsalt": "znsage", "axes.spines.top": False, "axes.spines.right": False})
    figure, (writes, speed, latency) = plt.subplots(1, 3, figsize=(12, 5), width_ratios=[2.2, 1, 1], layout="constrained")
    for system, colour in zip(demo["systems"], COLOURS):
        writes.plot(*zip(*system["flash"]), color=colour, label=system["title"])
    writes.set(title="Flash writes per page swapped out", xlabel="swapped out so far, GiB", ylim=(0, None))
    writes.legend(frameon=False)
    for axes, key, title in [
        (speed, "swap_out_mb_s", "Swap-out rate, MB/s"),
        (latency, "p99_ms", "p99 access latency, ms"),
    ]:
        titles = [system["title"].replace(", ", ",\n") for system in demo["systems"]]
        least, most = zip(*(system[key] for system in demo["systems"]))
        axes.bar(titles, least, color=COLOURS)
        span = [high - low for low, high in zip(least, most)]
        bars = axes.bar(titles, span, bottom=least, color=COLOURS, alpha=0.4)
        labels = [f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}" for low, high in zip(least, most)]
        axes.bar_label(bars, labels)
        axes.set_ylim(0, 1.08 * max(most))
        axes.set_title(title)
        axes.tick_params(axis="x", labelsize=8)
    figure.suptitle("The same memory on the same flash, swapped by stock Linux and by znsage")
    figure.supxlabel(demo["about"], fontsize=7.5)
    figure.savefig(to, metadata={"Date": None} if to.endswith(".svg") else None)


with open(sys.argv[1]) as file:
    draw(json.load(file), sys.argv[2])
