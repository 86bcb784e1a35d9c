# SPDX-License-Identifier: GPL-2.0-only
"""Runs znsage-sim and reads its results.

The program is that of the environment's ``ZNSAGE_SIM``, or ``znsage-sim`` on ``PATH``. Results are
kept in a folder by content: what is there does not run again.

>>> import znsage_sim
>>> result = znsage_sim.run({"device": "zn540", "workload": "zipf", "size": "2G"})  # doctest: +SKIP
>>> result["waf"]["total"]  # doctest: +SKIP
1.52
>>> frame = znsage_sim.frame("sweep.toml")  # doctest: +SKIP
>>> frame.groupby("name").swap_out_mb_s.mean()  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Union

import pandas as pd

__all__ = ["SimError", "device", "frame", "load", "points", "run", "sweep"]

File = Union[str, "os.PathLike[str]"]
Settings = Mapping[str, Any]


class SimError(RuntimeError):
    """znsage-sim failed; the text is what it said."""


def run(spec: Settings, *, runs: File = "runs") -> dict[str, Any]:
    """The result of one run. `spec` has the keys of a sweep file: ``{"host.memory": "32M"}``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        lines = [f"{json.dumps(key)} = {_toml(value)}\n" for key, value in spec.items()]
        file.write_text("[[sweep]]\n" + "".join(lines))
        (point,) = points(file, runs=runs)
        if not point["done"]:
            sweep(file, runs=runs)
        stored = load(point)
    if "result" not in stored:
        raise SimError(str(stored.get("error")))
    return dict(stored["result"])


def sweep(
    file: File, *, runs: File = "runs", set: Settings = {}, threads: int | None = None, shard: str = ""
) -> None:
    """Runs those points of a sweep that `runs` lacks; `set` replaces keys of all of them."""
    more = ["--threads", str(threads)] if threads else []
    more += ["--shard", shard] if shard else []
    _call("sweep", file, "--runs", runs, *_set(set), *more, quiet=False)


def points(file: File, *, runs: File = "runs", set: Settings = {}) -> list[dict[str, Any]]:
    """The points of a sweep: `name`, `point` (its keys), `seed`, `file`, `done`. Nothing runs."""
    lines = _call("sweep", file, "--runs", runs, *_set(set), "--list").splitlines()
    return [json.loads(line) for line in lines]


def load(point: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of a point: `spec`, `version`, `command`, `result`, `course`; or `error`."""
    return dict(json.loads(Path(point["file"]).read_text()))


def frame(file: File, *, runs: File = "runs", set: Settings = {}) -> pd.DataFrame:
    """One row for each point that has run: name, keys of the lists, seed, and the flattened result."""
    rows = []
    for p in points(file, runs=runs, set=set):
        if p["done"]:
            stored = load(p)
            result = dict(_flat(stored.get("result", {})))
            rows.append({**result, "error": stored.get("error"), "name": p["name"], **p["point"], "seed": p["seed"]})
    return pd.DataFrame(rows)


def device(file: File) -> dict[str, Any]:
    """What a device does alone: latency, bandwidth, interference, compaction."""
    return dict(json.loads(_call("device", file, "--json")))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _flat(inner, f"{name}_{key}" if name else str(key))
    else:
        yield name, value


def _set(settings: Settings) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={_text(value)}")]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return json.dumps(value if isinstance(value, (bool, int, float)) else str(value))


def _call(*words: File, quiet: bool = True) -> str:
    program = os.environ.get("ZNSAGE_SIM", "znsage-sim")
    try:
        # Its progress goes to the terminal, unless nobody waits for it.
        done = subprocess.run(
            [program, *(os.fspath(word) for word in words)], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if quiet else None,
        )
    except FileNotFoundError:
        raise SimError(f"cannot find {program}: put znsage-sim on PATH, or its path into ZNSAGE_SIM") from None
    if done.returncode:
        raise SimError(f"{program} {' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout
