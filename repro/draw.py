# SPDX-License-Identifier: GPL-2.0-only
"""The figures: what each shows, of which results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from results import Estimate, Results
from sheet import Sheet


class Figure(NamedTuple):
    """A figure: its name, its caption, the sweeps that it needs, and how it is drawn."""

    name: str
    publication: str
    caption: str
    sweeps: Sequence[str]
    draw: Callable[[Results, Path], None]


ALL: list[Figure] = []


def figure(
    publication: str, caption: str, *sweeps: str
) -> Callable[[Callable[[Results, Path, str], None]], Callable[[Results, Path, str], None]]:
    """Lists a function that draws a figure. It is named after the function."""

    def listed(draw: Callable[[Results, Path, str], None]) -> Callable[[Results, Path, str], None]:
        name = draw.__name__.replace("_", "-")
        ALL.append(Figure(name, publication, caption, sweeps, lambda r, folder: draw(r, folder, name)))
        return draw

    return listed


def over(r: Results, sweep: str, name: str, column: str, base: str | None = None) -> list[tuple[float, Estimate]]:
    """A quantity over utilization, or, seed by seed, over that of `base`."""
    frame = r.frame(sweep)
    points = []
    for u in sorted(frame[frame["name"] == name]["utilization"].unique()):
        value = r.of(sweep, name, column, utilization=u)
        points.append((u, Estimate.of(value / r.of(sweep, base, column, utilization=u) if base else value)))
    return points


def ends(r: Results, sweep: str, name: str, column: str) -> list[tuple[float, Estimate, Estimate]]:
    """The same with either pace of a block SSD's garbage collection."""
    burst, even = (over(r, sweep, n, column) for n in (name, f"{name}, even"))
    return [(u, one, other) for (u, one), (_, other) in zip(burst, even)]


def ticks(r: Results, sweep: str) -> list[float]:
    return sorted(r.frame(sweep)["utilization"].unique())


BLOCK = [
    "block SSD", "block SSD, Linux 6.12", "block SSD, 15 % spare, Linux 6.12", "block SSD + TRIM",
    "block SSD + TRIM of each page",
]
OURS = ["znsage", "znsage on the block SSD"]


@figure("ZNSwap", "Random writes: swap-out and write amplification.", "znswap")
def znswap(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out", "Write amplification"])
    for panel, (column, label) in enumerate([("swap_out_mb_s", "MB/s"), ("waf_total", "WAF")]):
        for system in [*BLOCK, "ZNSwap", *OURS]:
            sheet.line(panel, system, over(r, "znswap", system, column))
        sheet.utilization(panel, label, ticks(r, "znswap"))
    sheet.save(folder, name, 2)


@figure("ZNSwap", "Both relative to the block SSD with Linux 5.12.", "znswap")
def znswap_ratio(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out over the block SSD's", "WAF over the block SSD's"])
    said = {"swap_out_mb_s": [(10, 1.0), (50, 2.0)], "waf_total": [(50, 0.5)]}
    for panel, column in enumerate(said):
        for system in ["block SSD + TRIM", "ZNSwap", "znsage"]:
            sheet.line(panel, system, over(r, "znswap", system, column, "block SSD"))
        sheet.published(panel, said[column], "ZNSwap")
        sheet.utilization(panel, "times", ticks(r, "znswap"))
    sheet.save(folder, name, 4)

@figure("ZNSwap", "p99 of page faults that read from the device, random writes.", "znswap")
def znswap_p99(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["p99 of a page fault"], width=5)
    for system in ["block SSD", "block SSD, Linux 6.12"]:
        sheet.span(0, system, ends(r, "znswap", system, "fault_latency_p99_us"))
    for system in ["ZNSwap", *OURS]:
        sheet.line(0, system, over(r, "znswap", system, "fault_latency_p99_us"))
    sheet.utilization(0, "us (log scale)", ticks(r, "znswap"), log=True)
    sheet.save(folder, name, 2)


@figure("ZNSwap", "CPU time of garbage collection and of TRIM, random writes.", "znswap")
def znswap_cpu(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["CPU time of GC and TRIM"], width=4.4)
    for system in ["block SSD + TRIM", "block SSD + TRIM of each page", "ZNSwap", "znsage"]:
        sheet.line(0, system, over(r, "znswap", system, "cpu_gc"))
    sheet.published(0, [(10, 0.3)], "ZNSwap")
    sheet.utilization(0, "% of a CPU", ticks(r, "znswap"))
    sheet.save(folder, name, 2)


@figure(
    "ZNSwap",
    "From the fill on, random writes at 80 % (one seed): how far from its steady state is a system?",
    "course",
)
def course(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out at 80 %", "Write amplification at 80 %"])
    for panel, (key, label) in enumerate([("swap_out_mb_s", "MB/s"), ("waf", "WAF")]):
        for system in r.names("course"):
            moments = r.course("course", system)["moments"]
            points = [(m["written"], Estimate.of(float(m[key]))) for m in moments]
            sheet.line(panel, system, points, markers=False)
        sheet.label(panel, "swapped out since the fill, device sizes", label)
    sheet.save(folder, name, 3)


@figure("ZNSwap", "memcached with Facebook's ETC: requests, latency and write amplification.", "znswap-etc")
def znswap_etc(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Requests", "p99 of a request", "Write amplification"], width=3.2)
    for system in ["block SSD", "ZNSwap", "znsage"]:
        points = over(r, "znswap-etc", system, "operations_s")
        sheet.line(0, system, [(u, Estimate(*(v / 1000 for v in e))) for u, e in points])
        sheet.line(2, system, over(r, "znswap-etc", system, "waf_total"))
        if system != "block SSD":
            sheet.line(1, system, over(r, "znswap-etc", system, "request_latency_p99_us"))
    sheet.span(1, "block SSD", ends(r, "znswap-etc", "block SSD", "request_latency_p99_us"))
    sheet.published(2, [(10, 2.4)], "block SSD")
    for panel, label in enumerate(["thousands a second", "us (log scale)", "WAF"]):
        sheet.utilization(panel, label, ticks(r, "znswap-etc"), log=panel == 1)
    sheet.save(folder, name, 5)


@figure(
    "ZNSwap",
    "ETC at 10 %, requests arriving at their own rate (Poisson), as far as a system answers them.",
    "znswap-etc-rate",
)
def znswap_etc_rate(r: Results, folder: Path, name: str) -> None:
    def points(system: str) -> list[tuple[float, Estimate]]:
        rates = sorted(r.frame("znswap-etc-rate")["load.rate"].unique())
        p99 = {n: r.of("znswap-etc-rate", system, "request_latency_p99_us", **{"load.rate": n}) for n in rates}
        # Where more come than are answered, latency is a matter of the run's length.
        return [(rate / 1000, Estimate.of(value)) for rate, value in p99.items() if value.max() < 100_000]

    sheet = Sheet(["p99 of a request"], width=5)
    burst, even = points("block SSD"), points("block SSD, even")
    sheet.span(0, "block SSD", [(rate, one, other) for (rate, one), (_, other) in zip(burst, even)])
    # They may coincide.
    for system, size in (("ZNSwap", 8), ("znsage", 5)):
        sheet.line(0, system, points(system), size=size)
    sheet.label(0, "thousands of requests a second", "us (log scale)", log=True)
    sheet.save(folder, name, 3)


@figure("ZNSwap", "A reading and a writing cgroup at 40 %.", "znswap-tenants")
def znswap_tenants(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Accesses of a reading and a writing cgroup"], width=5.5)
    series = {
        s: [Estimate.of(r.of("znswap-tenants", s, f"tenants_{i}_operations_s") / 1000) for i in (0, 1)]
        for s in r.names("znswap-tenants")
    }
    sheet.bars(0, ["reader", "writer"], series)
    sheet.label(0, "", "thousands a second")
    sheet.save(folder, name, 2)


@figure(
    "Thesis",
    "Swap-out on small zones over that of ZNSwap on large ones. Over "
    "how many dies its drive lays a zone is not published; one and 16 are the ends of a range.",
    "thesis", "thesis-zones",
)
def thesis(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out over ZNSwap's on large zones", "Swap-out, 20 % utilization"], width=4)
    for system in r.names("thesis"):
        if system != "ZNSwap, large zones":
            sheet.line(0, system, over(r, "thesis", system, "swap_out_mb_s", "ZNSwap, large zones"))
    sheet.axes[0].axhline(1, color="black", linewidth=0.8)
    sheet.utilization(0, "times", ticks(r, "thesis"))
    # One stream, one for each CPU, one for each thread.
    zones = {1: "single", 8: "cpu", 16: "process"}
    for system in r.names("thesis-zones"):
        rates = {n: r.of("thesis-zones", system, "swap_out_mb_s", **{"published.policy": p}) for n, p in zones.items()}
        sheet.line(1, system, [(n, Estimate.of(rate)) for n, rate in rates.items()])
    sheet.label(1, "zones that swap-out writes at once", "MB/s", ticks=list(zones))
    sheet.save(folder, name, 3)


@figure(
    "ZNSage (2025)",
    "Figures 7 and 8: swap-out, and over that of ZNSwap. \"At first\" is the first 4 % of the device after the "
    "fill.",
    "znsage-2025",
)
def znsage_2025(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out", "Swap-out over ZNSwap's"])
    for system in r.names("znsage-2025"):
        sheet.line(0, system, over(r, "znsage-2025", system, "swap_out_mb_s"))
        if not system.startswith("ZNSwap"):
            base = "ZNSwap, at first" if "at first" in system else "ZNSwap"
            sheet.line(1, system, over(r, "znsage-2025", system, "swap_out_mb_s", base))
    sheet.published(1, [(20, [1.0, 1.12]), (40, [1.0, 1.12]), (60, 1.12), (80, [1.0, 1.12])], "ZNSage")
    for panel, label in enumerate(["MB/s", "times"]):
        sheet.utilization(panel, label, ticks(r, "znsage-2025"))
    sheet.save(folder, name, 3)


@figure("ZNSage (2025)", "Figure 9: throughput that memcached loses with half of its data in swap.", "znsage-2025-ycsb")
def znsage_2025_ycsb(r: Results, folder: Path, name: str) -> None:
    def lost(system: str, load: str) -> Estimate:
        half, memory = (
            r.of("znsage-2025-ycsb", f"{system}, {where}", "operations_s", workload=load)
            for where in ("half swapped", "in memory")
        )
        return Estimate.of(100 * (1 - half / memory))

    sheet = Sheet(["Throughput lost, half of the data in swap"], width=4.6)
    series = {s: [lost(s, "ycsb-b"), lost(s, "ycsb-a")] for s in ("ZNSage (2025)", "ZNSwap", "znsage")}
    sheet.bars(0, ["95 % reads", "50 % reads"], series, {"ZNSage (2025)": [40.66, 22.83]})
    sheet.label(0, "", "%")
    sheet.save(folder, name, 4)


DEVICES = {"ZNS": "zn540", "conventional": "conventional"}


@figure("ZNS analysis", "Latency a byte, relative to that of 4 KiB; one request at a time, half of the device written.")
def analysis_latency(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Writes in sequence", "Random reads"], width=3.2)
    sizes = [1, 2, 4, 8, 16, 32]
    for panel, reads in enumerate([False, True]):
        # They may coincide.
        for title, size in (("conventional", 8), ("ZNS", 5)):
            points = [(4 * b, Estimate.of(r.per_byte(DEVICES[title], b, reads))) for b in sizes]
            sheet.line(panel, title, points, size=size)
        sheet.label(panel, "request, KiB", "latency a byte")
        sheet.axes[panel].set_xscale("log", base=2)
        sheet.axes[panel].set_xticks([4 * b for b in sizes], [str(4 * b) for b in sizes])
    sheet.published(0, [(8, 0.5)], "ZNS")
    sheet.published(0, [(8, 0.84)], "conventional", "+")
    sheet.save(folder, name, 4)


@figure(
    "ZNS analysis",
    "Throughput that a writer of 4 KiB blocks loses beside others, which write to other zones or parts.",
)
def analysis_isolation(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Throughput lost beside other writers"], width=4.4)
    series = {title: [Estimate.of(r.beside(device, n)) for n in (1, 2)] for title, device in DEVICES.items()}
    sheet.bars(0, ["one other", "two others"], series, {"ZNS": [None, 28.0], "conventional": [None, 36.0]})
    sheet.label(0, "", "%")
    sheet.save(folder, name, 3)


@figure("ZNS analysis", "Bandwidth in each half second while 10 GB are written.")
def analysis_bandwidth(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["60 % full", "90 % full"])
    for panel, fill in enumerate([60, 90]):
        for title, device in {**DEVICES, "conventional, even": "conventional-even"}.items():
            values = enumerate(r.steady(device, fill))
            sheet.line(panel, title, [((i + 1) / 2, Estimate.of(float(v))) for i, v in values], markers=False)
        sheet.label(panel, "seconds", "MB/s")
    sheet.save(folder, name, 3)


FLASH = {"TLC": "zns-plus-tlc", "MLC": "zns-plus-mlc", "Z-NAND": "zns-plus-znand"}


@figure("ZNS+", "Half of the units of 16 KiB in a zone move to another one, by the host or in the device.")
def zns_plus_copy(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Copy bandwidth (log scale)", "Time saved in the device"])
    said = {"host": [79.5, 84.5, 104.0], "device": [96.5, 148.0, 242.4], "cached": [113.4, 154.6, 218.9]}
    series = {"host": "by the host", "device": "ZNS+, in the device", "cached": "IZC-H, cached units by the host"}
    for by, shift, marker in (("host", -0.15, "x"), ("device", 0, "+"), ("cached", 0.15, "1")):
        at = [i + shift for i in range(len(FLASH))]
        points = [(x, Estimate.of(r.moved(d, by, "mb_s"))) for x, d in zip(at, FLASH.values())]
        sheet.line(0, series[by], points, joined=False)
        sheet.published(0, list(zip(at, said[by])), by, marker)
    sheet.label(0, "flash", "MB/s", log=True)
    sheet.axes[0].set_xticks(range(3), FLASH)
    sheet.axes[0].margins(x=0.15)
    devices = {"emulated SSD": "zns-plus", **FLASH}
    saved = [Estimate.of(100 * (1 - r.moved(d, "device", "ms") / r.moved(d, "host", "ms"))) for d in devices.values()]
    sheet.bars(1, list(devices), {"ZNS+, in the device": saved})
    sheet.published(1, [(-0.3, [28.2, 51.7])], "range")
    sheet.label(1, "device", "%")
    sheet.save(folder, name, 3)


@figure(
    "ZNS+",
    "Swap with random writes: swap-out relative to GC by the host (ZNSwap), and write amplification.",
    "zns-plus",
)
def zns_plus(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Swap-out over GC by the host", "Write amplification"])
    for system in r.names("zns-plus"):
        if system != "ZNSwap":
            sheet.line(0, system, over(r, "zns-plus", system, "swap_out_mb_s", "ZNSwap"))
        sheet.line(1, system, over(r, "zns-plus", system, "waf_total"))
    sheet.axes[0].axhspan(1.33, 2.91, color="black", alpha=0.07, label="published (ZNS+, file system)")
    for panel, label in enumerate(["times", "WAF"]):
        sheet.utilization(panel, label, ticks(r, "zns-plus"))
    sheet.save(folder, name, 3)


@figure(
    "Mappings",
    "Memory for mappings, bytes for each page of the device. 24 and 64 bytes are constants of the published "
    "designs; znsage's are measured.",
    "mapping",
)
def mapping(r: Results, folder: Path, name: str) -> None:
    sheet = Sheet(["Bytes for each page of the device"], width=5.5)
    series = {}
    for system in r.names("mapping"):
        blocks, slots, ram, device = (
            float(r.of("mapping", system, c)[0])
            for c in ("capacity_blocks", "slots", "mapping_ram_bytes", "mapping_device_per_page")
        )
        series[system] = [Estimate.of(ram / blocks), Estimate.of(device * slots / blocks)]
    sheet.bars(0, ["in RAM", "on the device"], series)
    sheet.label(0, "", "bytes")
    sheet.save(folder, name, 5)


# Swap areas of where.toml: a label, the name, and what tells its points apart.
AREAS = [
    ("all,\n50 % used", "all", {"utilization": 50}), ("all,\n80 % used", "all", {"utilization": 80}),
    ("70 %,\nrest full", "70 %", {}), ("40 %,\nrest full", "40 %", {}),
    *((f"10 %,\n{other} % full", "10 %", {"device.conventional.other_data": other / 100}) for other in (90, 60, 30)),
]


@figure(
    "Where znsage pays",
    "Swap-out of znsage over stock swap's on the same conventional SSD, by the part that is swapped to, by other data, "
    "which lie still, and by spare flash. Unless said, 80 % of that part is used.",
    "where",
)
def where(r: Results, folder: Path, name: str) -> None:
    panels = {"uniform": ("stock", AREAS), "zipf": ("stock", AREAS)}
    panels["uniform, before Linux 6.12"] = ("stock, scan", AREAS[1:5])
    sheet = Sheet(list(panels), width=4.4)
    for panel, (title, (stock, areas)) in enumerate(panels.items()):
        load = {"workload": title.split(",")[0]}
        for spare in (7, 15, 28):
            drive = {**load, "device.conventional.over_provisioning": spare / 100}
            rates = [
                Estimate.of(
                    r.of("where", f"{area}, znsage", "swap_out_mb_s", **load, **of)
                    / r.of("where", f"{area}, {stock}", "swap_out_mb_s", **drive, **of)
                )
                for _, area, of in areas
            ]
            sheet.line(panel, f"znsage, {spare} % spare", list(enumerate(rates)))
        sheet.label(panel, "", "times stock swap's")
        sheet.axes[panel].axhline(1.0, color="black", linewidth=0.8)
        sheet.axes[panel].set_xticks(range(len(areas)), [label for label, _, _ in areas], fontsize=6)
    sheet.save(folder, name)
