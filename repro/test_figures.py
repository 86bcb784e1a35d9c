# SPDX-License-Identifier: GPL-2.0-only
"""Do claims and figures find what they need, and do verdicts fail when they should? Their runs are not made."""

import doctest
import json
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import claims
import draw
import figures
import numpy as np
import pandas as pd
import results
import znsage_sim

TINY = 'device = "zn540"\nsize = "768M"\nhost.memory = "24M"\nrun.warmup = 0\nrun.measure = 0.05\n'


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, _: object) -> unittest.TestSuite:
    tests.addTests(doctest.DocTestSuite(claims))
    return tests


class Made(results.Results):
    """Results of the real sweeps' points with made-up numbers, those of columns that the program writes."""

    columns: dict[str, float] = {}

    def frame(self, sweep: str) -> pd.DataFrame:
        if sweep not in self._frames:
            points = znsage_sim.points(HERE / f"{sweep}.toml", runs=self.runs)
            columns = {c: 2.0 for c in self.columns}
            rows = [{**columns, "name": p["name"], "seed": p["seed"], **p["point"]} for p in points]
            self._frames[sweep] = pd.DataFrame(rows)
        return self._frames[sweep]

    def course(self, sweep: str, name: str) -> dict[str, Any]:
        assert name in self.names(sweep)
        return {"moments": [{"written": w / 16, "swap_out_mb_s": 1, "waf": 1} for w in range(1, 90)], "faults": []}

    def device(self, name: str) -> dict[str, Any]:
        size = [1, 2, 4, 8, 16, 32]
        latency = [{"reads": r, "blocks": b, "us": 10.0} for r in (False, True) for b in size]
        compaction = [{"by": by, "ms": 1.0, "mb_s": 80.0, "copyback_percent": 80.0} for by in ("host", "device", "cached")]
        return {
            "latency": latency, "beside": [{"others": n, "per_s": 100 - n} for n in range(3)],
            "steady": [{"fill": f, "mb_s": [1.0, 2.0]} for f in (60, 90)], "compaction": compaction,
        }


class Figures(unittest.TestCase):
    def test_a_run_is_made_once_and_has_the_columns_of_claims_and_figures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            runs, file = Path(folder) / "runs", Path(folder) / "tiny.toml"
            file.write_text(TINY + '[[sweep]]\nname = "one"\nworkload = ["etc", "two-tenants"]\nutilization = 40\n')
            self.assertEqual([p["done"] for p in znsage_sim.points(file, runs=runs)], [False, False])
            self.assertTrue(znsage_sim.frame(file, runs=runs).empty)
            znsage_sim.sweep(file, runs=runs, threads=2)
            frame = znsage_sim.frame(file, runs=runs)
            self.assertEqual(list(frame["workload"]), ["etc", "two-tenants"])
            self.assertEqual(set(frame["name"]), {"one"})
            times = [p.stat().st_mtime_ns for p in sorted(runs.glob("*.json"))]
            result = znsage_sim.run(
                {"device": "zn540", "size": "768M", "host.memory": "24M", "run.warmup": 0, "run.measure": 0.05,
                 "workload": "etc", "utilization": 40}, runs=runs,
            )
            self.assertEqual(result["waf"]["total"], frame["waf_total"][0])
            self.assertEqual(times, [p.stat().st_mtime_ns for p in sorted(runs.glob("*.json"))])
            with self.assertRaisesRegex(znsage_sim.SimError, "no-such-key"):
                znsage_sim.run({"no-such-key": 1}, runs=runs)

            made = Made(HERE, runs, {})
            made.columns = {str(c): 2.0 for c in frame if frame[c].dtype.kind in "if"}
            judged = list(claims.judge_all(HERE / "claims.toml", made))
            self.assertIn(str(len(judged)), claims.count(judged))
            for figure in draw.ALL:
                figure.draw(made, Path(folder))
                first = (Path(folder) / f"{figure.name}.svg").read_bytes()
                figure.draw(made, Path(folder))
                self.assertEqual(first, (Path(folder) / f"{figure.name}.svg").read_bytes(), figure.name)
            self.assertLessEqual(set(figures.SHOWN), {f.name for f in draw.ALL})
            self.assertIn("## ZNS+", figures.page(judged, draw.ALL, "full", ""))

    def test_what_a_device_does_alone_has_the_parts_that_are_read(self) -> None:
        made, real = Made(HERE, Path("runs"), {}), znsage_sim.device("zns-plus-tlc")
        for part, rows in made.device("zns-plus-tlc").items():
            self.assertLessEqual({json.dumps(sorted(r)) for r in rows}, {json.dumps(sorted(r)) for r in real[part]})

    def test_an_interval_that_holds_the_bound_decides_nothing(self) -> None:
        value = results.Estimate.of(np.array([0.97, 1.01, 1.05]))
        self.assertEqual(claims.judge("above 1", value), claims.NOT_DECIDED)
        self.assertEqual(claims.judge(1.5, results.Estimate.of(np.array([1.5]))), claims.NOT_DECIDED)
        # A small effect with the wrong sign, however near.
        self.assertEqual(claims.judge(1.05, results.Estimate(0.98, 0.97, 0.99), neutral=1.0), claims.NOT_REPRODUCED)

    def test_opposite_errors_do_not_cancel(self) -> None:
        points = [claims.judge(1.0, results.Estimate(v, v, v)) for v in (1.51, 1.01, 0.47)]
        self.assertEqual(claims.worst(points), claims.NOT_REPRODUCED)


if __name__ == "__main__":
    unittest.main()
