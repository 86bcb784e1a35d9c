# SPDX-License-Identifier: GPL-2.0-only
"""Judges the claims of claims.toml.

The interval over the seeds decides, not the mean: a claim is reproduced if all of the interval is where the
claim says, not reproduced if none of it is, and not decided otherwise. A claim about several points is as
good as its worst point.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import Estimate, Results

REPRODUCED, NOT_REPRODUCED, NOT_DECIDED, FITTED = "reproduced", "not reproduced", "not decided", "fitted"
TOLERANCE = 0.1


class Judged(NamedTuple):
    """A claim with what was simulated."""

    publication: str
    claim: dict[str, Any]
    points: list[tuple[Any, Estimate]]
    verdict: str


def bounds(published: Any, neutral: float | None = None) -> tuple[float, float]:
    """Where a value must be. An effect may not have the opposite direction, however small it is.

    >>> bounds(2.0), bounds("above 1"), bounds([1.33, 2.91]), bounds(1.05, neutral=1.0)
    ((1.8, 2.2), (1.0, inf), (1.33, 2.91), (1.0, 1.155))
    """
    if isinstance(published, list):
        return float(published[0]), float(published[1])
    if isinstance(published, str):
        word, number = published.split()
        return (float(number), np.inf) if word == "above" else (-np.inf, float(number))
    low, high = (round(published * (1 + sign * TOLERANCE), 12) for sign in (-1, 1))
    if neutral is not None and published > neutral:
        low = max(low, neutral)
    elif neutral is not None and published < neutral:
        high = min(high, neutral)
    return low, high


def judge(published: Any, value: Estimate, neutral: float | None = None) -> str:
    """The verdict on one point.

    >>> judge("above 1", Estimate(1.01, 0.98, 1.04))
    'not decided'
    >>> judge("above 1", Estimate(1.01, 1.005, 1.015)), judge("below 1", Estimate(1.01, 1.005, 1.015))
    ('reproduced', 'not reproduced')
    >>> judge(2.0, Estimate(2.1, 2.05, 2.15)), judge(2.0, Estimate(2.1, 1.9, 2.3)), judge(2.0, Estimate(1.5, 1.4, 1.6))
    ('reproduced', 'not decided', 'not reproduced')
    """
    low, high = bounds(published, neutral)
    strict = isinstance(published, str)
    inside = low < value.low and value.high < high if strict else low <= value.low and value.high <= high
    if inside:
        return REPRODUCED
    outside = value.high <= low or value.low >= high if strict else value.high < low or value.low > high
    return NOT_REPRODUCED if outside else NOT_DECIDED


def worst(verdicts: list[str]) -> str:
    """
    >>> worst(["reproduced", "not decided"]), worst(["reproduced", "not reproduced", "not decided"])
    ('not decided', 'not reproduced')
    """
    return next((v for v in (NOT_REPRODUCED, NOT_DECIDED) if v in verdicts), REPRODUCED)


def functions(results: Results, sweep: str | None) -> dict[str, Any]:
    """What the expressions of claims.toml may use."""
    names: dict[str, Any] = {
        "per_byte": results.per_byte,
        "beside": results.beside,
        "moved": results.moved,
        "slowest": lambda d, fill: float(results.steady(d, fill).min() / results.steady(d, fill).mean()),
        "drops": lambda d, fill: float(100 * np.mean(results.steady(d, fill) < 0.75 * results.steady(d, fill).max())),
    }
    if sweep:
        frame = results.frame(sweep)

        def of(name: str, column: str, u: float | None = None, **point: Any) -> np.ndarray:
            return results.of(sweep, name, column, **point, **({} if u is None else {"utilization": u}))

        def lost(name: str, load: str) -> np.ndarray:
            half, all_of_it = (
                of(f"{name}, {where}", "operations_s", workload=load) for where in ("half swapped", "in memory")
            )
            return np.asarray(100 * (1 - half / all_of_it))

        def reads_per_fault(name: str, u: float) -> np.ndarray:
            # A block that GC reads is no fault's.
            reads = of(name, "counts_read_blocks", u) - of(name, "counts_gc_read_blocks", u)
            return np.asarray(reads / (of(name, "counts_major_faults", u) + of(name, "counts_readahead", u)))

        names |= {
            "of": of,
            "reads_per_fault": reads_per_fault,
            "lost": lost,
            "p99": lambda name, rate: of(name, "request_latency_p99_us", **{"load.rate": rate}),
            "to_zones": lambda name, policy: of(name, "swap_out_mb_s", **{"published.policy": policy}),
            "both": lambda name: of(name, "tenants_0_operations_s") + of(name, "tenants_1_operations_s"),
            "most": lambda values: np.max(values, axis=0),
            "utilizations": sorted(frame["utilization"].unique()),
        }
    return names


def sweeps(file: Path) -> list[str]:
    """Those that claims need."""
    claims = (c for publication in tomllib.loads(file.read_text())["publication"] for c in publication["claim"])
    return [c["sweep"] for c in claims if "sweep" in c]


def judge_all(file: Path, results: Results) -> Iterator[Judged]:
    """Judges each claim; one whose results are missing raises."""
    for publication in tomllib.loads(file.read_text())["publication"]:
        for claim in publication["claim"]:
            known = functions(results, claim.get("sweep"))
            code = compile(claim["value"], f"{file.name}: {claim['what']}", "eval")
            points = [(x, Estimate.of(eval(code, {**known, "x": x}))) for x in claim.get("at", [None])]
            verdict = worst([judge(claim["published"], value, claim.get("neutral")) for _, value in points])
            yield Judged(publication["name"], claim, points, FITTED if "fitted" in claim else verdict)


def number(value: float, digits: int = 3) -> str:
    """Three digits, or fewer.

    >>> number(1.0049), number(40.66), number(1234.5), number(-0.001)
    ('1', '40.7', '1230', '-0.001')
    """
    return f"{float(f'{value:.{digits}g}'):.12g}"


def estimate(value: Estimate) -> str:
    """
    >>> estimate(Estimate(1.924, 1.892, 1.956)), estimate(Estimate(1.0041, 1.0039, 1.0043))
    ('1.92±0.032', '1')
    """
    if np.isinf(value.low):
        return f"{number(value.mean)} (one seed)"
    low, high = number(value.low), number(value.high)
    return number(value.mean) if low == high else f"{number(value.mean)}±{number(value.high - value.mean, 2)}"


def published(value: Any) -> str:
    return f"{number(value[0])} to {number(value[1])}" if isinstance(value, list) else (
        value if isinstance(value, str) else number(value))


def count(judged: list[Judged]) -> str:
    """How many claims have which verdict, in words."""
    have = Counter(j.verdict for j in judged)
    words = ", ".join(f"{have[v]} {v}" for v in (REPRODUCED, NOT_REPRODUCED, NOT_DECIDED, FITTED) if have[v])
    return f"Of {len(judged)} claims: {words}."


def table(judged: list[Judged]) -> str:
    """The claims of a publication as a Markdown table, with the likely reasons below."""
    rows = ["| claim | published | simulated | verdict |", "| --- | --- | --- | --- |"]
    reasons: list[str] = []
    for j in judged:
        values = "; ".join((f"{x}: " if x is not None else "") + estimate(value) for x, value in j.points)
        why = j.claim.get("fitted") or ("" if j.verdict == REPRODUCED else j.claim.get("reason", ""))
        if why and why not in reasons:
            reasons.append(why)
        note = f" ({reasons.index(why) + 1})" if why else ""
        said = published(j.claim["published"])
        rows.append(f"| {j.claim['what']} | {said} | {values} | {j.verdict}{note} |")
    notes = [f"{n}. {why}" for n, why in enumerate(reasons, 1)]
    return "\n".join([*rows, "", *notes] if notes else rows) + "\n"
