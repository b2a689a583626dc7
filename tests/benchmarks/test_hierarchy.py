import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.space.zoo import load_space

FINE = load_space("flexibert-nano-s1star")


def test_the_best_is_known_and_observations_are_noisy(script: ModuleType) -> None:
    rng = derive(0)
    for seed in range(3):
        problem = script.Problem(seed)
        found = [problem.quality(FINE.sample(rng, "gene")) for _ in range(300)]
        assert max(found) < 1
        assert abs(np.mean(found)) < 0.1
        assert 0 < problem.best_in_pairs() < 1
    problem, layers = script.Problem(0), range(len(script.LAYERS))
    every = max(problem.raw([low, high]) for low in layers for high in layers)
    assert problem._best(2) == pytest.approx(every)
    design = FINE.sample(derive(0))
    request = Request(FINE.card(design), design=design)
    first, again = (script.Problem(0).evaluate(request).metrics["merit"] for _ in range(2))
    assert first == again != script.Problem(0).quality(design)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
def test_coarse_to_fine_finds_better_designs_than_a_search_of_the_fine_space(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["evolution", "coarse to fine, evolution"]
    files = ["--rows", str(tmp_path / "rows"), "--json", str(tmp_path / "figures")]
    monkeypatch.setattr(sys, "argv", ["hierarchy", "--seeds", "4", "--only", *names, *files])
    script.main()
    figures = json.loads((tmp_path / "figures").read_text(encoding="utf-8"))["contestants"]
    direct, coarse = (figures[name] for name in names)
    assert coarse["final"][0] > direct["final"][0]
    assert coarse["evaluations_to"]["0.6"]["median"] < direct["evaluations_to"]["0.6"]["median"]
    assert "median evaluations" in capsys.readouterr().out
    script.main()  # everything is there already
    assert len((tmp_path / "rows").read_text(encoding="utf-8").splitlines()) == 8
