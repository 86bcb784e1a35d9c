#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Simulates published figures, draws them, and judges what the publications claim.

Each run is a file in --runs. What is there does not run again, so an interrupted call goes on.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import claims
import draw
import znsage_sim
from results import Results

# What --scale changes of the sweeps.
SCALES = {"full": {}, "quick": {"size": "2G"}}
# The figures of docs/dev/figures.md, which tell most.
SHOWN = [
    "znswap", "znswap-ratio", "znswap-p99", "znswap-etc", "znswap-etc-rate", "course", "thesis", "znsage-2025",
    "analysis-bandwidth", "zns-plus", "where",
]
HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Published figures, simulated

`make figures` simulates what publications measured, draws it, and judges what they claim. It wrote this page.
[claims.toml](../../repro/claims.toml) has the place of each claim in its publication and how it is computed;
[research.md](research.md#a-figure) says how to change a figure.

**{count}** The 95 % interval over the seeds (±) decides, not the mean.

- A claim is *reproduced* if the whole interval is where the claim says: within 10 % of a number, or inside a range.
- It is *not reproduced* if none of the interval is there, and *not decided* otherwise.
- Of several points the worst gives the verdict.
- A value to which a model was fitted is *fitted*: agreement proves nothing.

{scale} Error bars are 95 % intervals. An area lies between two paces of a block SSD's garbage collection
(`device.conventional.gc_pace`): a superblock at once (`burst`, the default), or a little with each write (`even`).
Real drives lie between. [repro](../../repro) has sizes, warm-up and settings.
"""
SCALE = {
    "full": "Devices have 4 GiB, and as many zones as real ones. There are three seeds.",
    "quick": "Devices have 2 GiB here (`make figures SCALE=quick`) instead of 4. There are three seeds.",
}


def page(judged: list[claims.Judged], figures: list[draw.Figure], scale: str, folder: str) -> str:
    """A page of figures and verdicts in Markdown."""
    text = HEAD.format(count=claims.count(judged), scale=SCALE[scale])
    for publication in dict.fromkeys(f.publication for f in figures):
        text += f"\n## {publication}\n"
        for figure in figures:
            if figure.publication == publication:
                text += f"\n{figure.caption}\n\n![{figure.name}]({folder}{figure.name}.svg)\n"
        if own := [j for j in judged if j.publication == publication]:
            text += "\n" + claims.table(own)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default="runs", help="where runs are stored [runs]")
    parser.add_argument("--out", type=Path, default="figures", help="where figures are written [figures]")
    parser.add_argument("--scale", choices=SCALES, default="full", help="quick: smaller devices")
    parser.add_argument("--threads", type=int, help="runs at a time [one for each CPU]")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this figure, without verdicts")
    parser.add_argument("--docs", type=Path, help="also write figures.md and some of the SVGs to this folder")
    args = parser.parse_args()

    chosen = [f for f in draw.ALL if not args.only or f.name in args.only]
    if unknown := set(args.only or []) - {f.name for f in chosen}:
        parser.error(f"no figure is called {', '.join(unknown)}; there are {', '.join(f.name for f in draw.ALL)}")
    results = Results(HERE, args.runs, SCALES[args.scale])
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        more = [] if args.only else claims.sweeps(HERE / "claims.toml")
        for sweep in dict.fromkeys([*(s for f in chosen for s in f.sweeps), *more]):
            results.run(sweep, args.threads)
        for figure in chosen:
            figure.draw(results, args.out)
        if args.only:
            return 0
        judged = list(claims.judge_all(HERE / "claims.toml", results))
    except (znsage_sim.SimError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    (args.out / "figures.md").write_text(page(judged, chosen, args.scale, ""))
    if args.docs:
        shown = [f for f in chosen if f.name in SHOWN]
        (args.docs / "figures").mkdir(exist_ok=True)
        for figure in shown:
            shutil.copy(args.out / f"{figure.name}.svg", args.docs / "figures")
        (args.docs / "figures.md").write_text(page(judged, shown, args.scale, "figures/"))
    for publication in dict.fromkeys(j.publication for j in judged):
        print(f"## {publication}\n\n{claims.table([j for j in judged if j.publication == publication])}")
    print(f"{claims.count(judged)}\n{len(chosen)} figures in {args.out}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
