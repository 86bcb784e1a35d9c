# SPDX-License-Identifier: GPL-2.0-only
"""The results that figures and claims are made of: sweeps by seed, and devices alone."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import znsage_sim

# Student's t of a two-sided interval of 95 %, by degrees of freedom.
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


class Estimate(NamedTuple):
    """A mean over seeds with its 95 % interval; without one after a single seed."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Any) -> Estimate:
        """Of one value for each seed; a plain number needs no seed and is exact."""
        if isinstance(values, (int, float)):
            return Estimate(float(values), float(values), float(values))
        mean, n = float(np.mean(values)), len(values)
        if n < 2:
            return Estimate(mean, -np.inf, np.inf)
        half = T95[min(n - 1, len(T95)) - 1] * float(np.std(values, ddof=1)) / n**0.5
        return Estimate(mean, mean - half, mean + half)


class Results:
    """What ran of the sweeps and devices of a folder, and where it is stored."""

    def __init__(self, folder: Path, runs: Path, scale: dict[str, Any]) -> None:
        self.folder, self.runs, self.scale = folder, runs, scale
        self._frames: dict[str, pd.DataFrame] = {}
        self._devices: dict[str, dict[str, Any]] = {}

    def settings(self, sweep: str) -> dict[str, Any]:
        """What the scale changes. Where memory, or a partition, is a part of the device, its size stays."""
        return {} if sweep in ("znsage-2025-ycsb", "where") else self.scale

    def run(self, sweep: str, threads: int | None) -> None:
        """Runs what is missing."""
        znsage_sim.sweep(self.folder / f"{sweep}.toml", runs=self.runs, set=self.settings(sweep), threads=threads)

    def frame(self, sweep: str) -> pd.DataFrame:
        """A row for each point."""
        if sweep not in self._frames:
            file = self.folder / f"{sweep}.toml"
            frame = znsage_sim.frame(file, runs=self.runs, set=self.settings(sweep))
            points = znsage_sim.points(file, runs=self.runs, set=self.settings(sweep))
            if len(frame) < len(points) or frame["error"].notna().any():
                good = int(frame["error"].isna().sum()) if len(frame) else 0
                raise LookupError(f"{file.name}: only {good} of {len(points)} points have a result")
            self._frames[sweep] = frame
        return self._frames[sweep]

    def names(self, sweep: str) -> list[str]:
        return list(dict.fromkeys(self.frame(sweep)["name"]))

    def of(self, sweep: str, name: str, column: str, **point: Any) -> np.ndarray:
        """A quantity, one value for each seed."""
        frame = self.frame(sweep)
        rows = frame[frame["name"] == name]
        for key, value in point.items():
            rows = rows[rows[key] == value]
        if rows.empty or rows[column].isna().any():
            raise LookupError(f"{sweep}.toml: no result of {name}, {point}")
        return rows.sort_values("seed")[column].to_numpy(float)

    def course(self, sweep: str, name: str) -> dict[str, Any]:
        """How the first run of this name went."""
        file = self.folder / f"{sweep}.toml"
        for p in znsage_sim.points(file, runs=self.runs, set=self.settings(sweep)):
            if p["name"] == name and p["done"]:
                return dict(znsage_sim.load(p)["course"])
        raise LookupError(f"{sweep}.toml: no result of {name}")

    def device(self, name: str) -> dict[str, Any]:
        """What a device does alone: no seed changes it. Kept beside the runs."""
        if name not in self._devices:
            kept = self.runs / f"device-{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
            if not kept.exists():
                measured = znsage_sim.device(name)
                unfinished = kept.with_suffix(f".{os.getpid()}")
                unfinished.write_text(json.dumps(measured))
                unfinished.rename(kept)
            self._devices[name] = dict(json.loads(kept.read_text()))
        return self._devices[name]

    def latency(self, device: str, blocks: int, reads: bool = False) -> float:
        """Mean latency of a request, microseconds."""
        rows = self.device(device)["latency"]
        return float(next(p["us"] for p in rows if (p["reads"], p["blocks"]) == (reads, blocks)))

    def per_byte(self, device: str, blocks: int, reads: bool = False) -> float:
        """Latency a byte, relative to that with 4 KiB."""
        return self.latency(device, blocks, reads) / blocks / self.latency(device, 1, reads)

    def beside(self, device: str, others: int) -> float:
        """Throughput that a writer loses beside others, percent."""
        rate = {p["others"]: float(p["per_s"]) for p in self.device(device)["beside"]}
        return 100.0 * (1 - rate[others] / rate[0])

    def steady(self, device: str, fill: int) -> np.ndarray:
        """MB/s in each half second while 10 GB are written."""
        return np.array(next(p["mb_s"] for p in self.device(device)["steady"] if p["fill"] == fill))

    def moved(self, device: str, by: str, what: str) -> float:
        """Of the compaction of a zone: ms, mb_s or copyback_percent."""
        return float(next(p[what] for p in self.device(device)["compaction"] if p["by"] == by))
