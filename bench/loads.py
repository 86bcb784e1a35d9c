# SPDX-License-Identifier: GPL-2.0-only
"""Programs in Python for `make bench-workloads`: loads.py NAME [SCALE].

Prints a line of JSON: what was measured, in microseconds, and a digest of the result, which must
not depend on where the memory was. SCALE below 1 makes it smaller.
"""

import json
import os
import random
import subprocess
import sys
import time
import zlib


def python_list(scale):
    """A list of numbers, each an object, read and replaced in random order."""
    draw = random.Random(1)
    numbers = [draw.random() for _ in range(int(1_200_000 * scale))]
    total = 0.0
    for _ in range(int(40_000 * scale)):
        at = draw.randrange(len(numbers))
        total += numbers[at]
        numbers[at] = draw.random()
    return {"digest": f"{total + sum(numbers):.6f}"}


def flip(scale):
    """An image turned over and mirrored."""
    import numpy as np
    from PIL import Image, ImageOps

    side = int(3072 * scale**0.5)
    pixels = np.random.default_rng(1).integers(0, 256, (side, side, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    del pixels
    for turn in (ImageOps.flip, ImageOps.mirror) * 3:
        image = turn(image)
    return {"digest": zlib.crc32(image.tobytes())}


def bfs(scale):
    """Breadth-first searches in a random graph with eight edges from each node."""
    import numpy as np

    nodes = int((1 << 20) * scale)
    rng = np.random.default_rng(1)
    edges = rng.integers(0, nodes, (nodes, 8), dtype=np.int32)
    total = 0
    for start in range(4):
        distance = np.full(nodes, -1, dtype=np.int32)
        frontier, level = np.array([start]), 0
        while frontier.size:
            distance[frontier] = level
            level += 1
            near = edges[frontier].ravel()
            distance[near[distance[near] < 0]] = level
            frontier = np.flatnonzero(distance == level)
        total += int(distance.sum())
    return {"digest": total}


def sandbox(scale):
    """Processes that each hold a table, forked from one, asleep, and woken at random."""
    import pandas as pd

    sandboxes = [Sandbox(pd, seed, int(250_000 * scale)) for seed in range(8)]
    digest = sum(s.wake() for s in sandboxes)
    draw, took = random.Random(1), []
    for _ in range(24):
        begun = time.monotonic()
        digest += draw.choice(sandboxes).wake()
        took.append((time.monotonic() - begun) * 1e6)
    for s in sandboxes:
        s.end()
    took.sort()
    return {"digest": f"{digest:.3f}", "median": took[len(took) // 2], "longest": took[-1]}


def stress(scale):
    """Two processes of stress-ng, which write patterns and check them."""
    command = "stress-ng --vm 2 --vm-bytes 96M --vm-keep --vm-method incdec --verify --vm-ops"
    done = subprocess.run([*command.split(), str(int(40_000 * scale))], capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode())
    return {"digest": 0}


class Sandbox:
    """A process that groups its table for each byte that it gets, and answers with a sum."""

    def __init__(self, pd, seed, rows):
        (wait, self.ring), (self.answer, reply) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self.work(pd, seed, rows, wait, reply)
            os._exit(0)
        os.close(wait)
        os.close(reply)

    @staticmethod
    def work(pd, seed, rows, wait, reply):
        import numpy as np

        rng = np.random.default_rng(seed)
        columns = {name: rng.random(rows) for name in "abcdefgh"}
        table = pd.DataFrame({"key": rng.integers(0, 100, rows), **columns})
        while os.read(wait, 1) == b"x":
            os.write(reply, f"{table.groupby('key').mean().to_numpy().sum():.6f}\n".encode())

    def wake(self):
        os.write(self.ring, b"x")
        return float(os.read(self.answer, 64))

    def end(self):
        # The processes forked later have the pipe as well, so closing it tells nothing.
        os.write(self.ring, b"q")
        if os.waitpid(self.pid, 0)[1]:
            sys.exit(f"process {self.pid} failed")


LOADS = {"stress": stress, "list": python_list, "flip": flip, "bfs": bfs, "sandbox": sandbox}

if __name__ == "__main__":
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    print(json.dumps(LOADS[sys.argv[1]](scale)))
