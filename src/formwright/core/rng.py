"""Random streams that depend on a seed and a path, and on nothing else."""

import hashlib
import json
from operator import index

from numpy.random import PCG64, Generator, SeedSequence


def derive(seed: int, *path: int | str) -> Generator:
    """Return the random stream of `(seed, path)`: the same in every process and on every platform.

    Streams of different seeds or paths are independent, so the k-th proposal of a study, `derive(seed, "ask", k)`,
    does not depend on how many numbers the proposals before it drew.
    """
    # JSON keeps 1 apart from "1" and ("a", "b") apart from ("ab",), which plain concatenation would not
    words = [step if isinstance(step, str) else index(step) for step in (seed, *path)]
    entropy = hashlib.sha256(json.dumps(words).encode()).digest()
    return Generator(PCG64(SeedSequence(int.from_bytes(entropy, "big"))))
