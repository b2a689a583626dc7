"""The models of transformers: the same names, losses and outputs that its users expect."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.nn.hf.helpers import DESIGNS, VOCABULARY, assert_same, hf_outputs, images, lively, outputs, tokens
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.generate import GenerationSettings, generate
from formwright.nn.hf import models
from formwright.nn.hf.config import FormwrightConfig
from formwright.nn.hf.config_fields import class_name
from formwright.nn.hf.imported import load_folder


def fresh(name: str, **options: Any) -> Any:
    """Build a model of transformers with the weights of `lively`."""
    card, spec = DESIGNS[name]
    labels = {"num_labels": spec.labels} if spec else {}
    kind = getattr(models, class_name(card, spec.task if spec else None))
    model = kind(FormwrightConfig(card.to_json(), **labels, **options)).eval()
    prefix = "" if spec else "transformer."
    model.load_state_dict({prefix + key: weight for key, weight in lively(name).state_dict().items()})
    return model


@pytest.mark.parametrize("name", DESIGNS)
def test_weights_have_the_names_of_the_plain_model(name: str) -> None:
    assert (hf_outputs(fresh(name), name) - outputs(lively(name), name)).abs().max() < 1e-6


@pytest.mark.parametrize("name", DESIGNS)
def test_saving_from_transformers_gives_a_folder_of_ours(name: str, tmp_path: Path) -> None:
    model = fresh(name)
    model.save_pretrained(tmp_path / "model")
    assert_same(load_folder(tmp_path / "model"), lively(name), name)
    assert (tmp_path / "model" / "formwright_nn_hf_models.py").is_file()
    assert model.config.auto_map["AutoModel"] == "formwright_nn_hf_models.FormwrightModel"


@pytest.mark.parametrize("name", [name for name in DESIGNS if DESIGNS[name][0].family != "vision"])
def test_all_layers_are_given_where_wanted(name: str) -> None:
    ids, mask = tokens()
    more = {"decoder_input_ids": ids} if name == "translator" else {}
    given = fresh(name)(ids, attention_mask=mask, output_hidden_states=True, **more)
    layers = given.decoder_hidden_states if name == "translator" else given.hidden_states
    assert len(layers) == 1 + len(DESIGNS[name][0].stacks[-1].layers)
    assert "hidden_states" not in fresh(name)(ids, attention_mask=mask, **more)


@torch.no_grad()
def test_losses_are_those_of_transformers() -> None:
    ids, mask = tokens()
    flat = lambda logits: logits.flatten(0, -2)  # noqa: E731
    classes = fresh("bert")(ids, attention_mask=mask, labels=torch.tensor([0, 2, 1]))
    assert float(classes.loss) == pytest.approx(float(F.cross_entropy(classes.logits, torch.tensor([0, 2, 1]))))
    many = fresh("bert", problem_type="multi_label_classification")(ids, mask, labels=torch.eye(3))
    assert float(many.loss) == pytest.approx(float(F.binary_cross_entropy_with_logits(many.logits, torch.eye(3))))
    score = fresh("varied")(ids, attention_mask=mask, labels=torch.tensor([0.5, 1.0, 2.0]))
    assert float(score.loss) == pytest.approx(float(F.mse_loss(score.logits[:, 0], torch.tensor([0.5, 1.0, 2.0]))))
    wanted = torch.where(mask.bool(), ids % 5, -100)
    words = fresh("bert-tokens")(ids, attention_mask=mask, labels=wanted)
    assert float(words.loss) == pytest.approx(float(F.cross_entropy(flat(words.logits), wanted.flatten())))
    masked = fresh("bert-masked")(ids, attention_mask=mask, labels=wanted)
    assert float(masked.loss) == pytest.approx(float(F.cross_entropy(flat(masked.logits), wanted.flatten())))
    following = fresh("writer")(ids, attention_mask=mask, labels=wanted)
    assert float(following.loss) == pytest.approx(
        float(F.cross_entropy(flat(following.logits[:, :-1]), wanted[:, 1:].flatten()))
    )
    first, last = torch.tensor([0, 1, 0]), torch.tensor([2, 1, 0])
    spans = fresh("bert-spans")(ids, attention_mask=mask, start_positions=first, end_positions=last)
    both = F.cross_entropy(spans.start_logits, first) + F.cross_entropy(spans.end_logits, last)
    assert float(spans.loss) == pytest.approx(float(both) / 2)
    pictures = fresh("viewer")(images(), labels=torch.tensor([1, 3]))
    assert float(pictures.loss) == pytest.approx(float(F.cross_entropy(pictures.logits, torch.tensor([1, 3]))))


@torch.no_grad()
def test_a_translator_reads_its_labels_shifted() -> None:
    ids, mask = tokens()
    labels = torch.where(mask.bool(), ids, -100)
    model = fresh("translator", pad_token_id=1)
    given = model(ids, attention_mask=mask, labels=labels)
    shifted = torch.cat((torch.ones(3, 1, dtype=torch.long), labels[:, :-1].clamp(min=1)), 1)
    assert torch.equal(given.logits, model(ids, attention_mask=mask, decoder_input_ids=shifted).logits)
    assert float(given.loss) == pytest.approx(float(F.cross_entropy(given.logits.flatten(0, 1), labels.flatten())))
    counted = model(ids, attention_mask=mask, labels=labels, num_items_in_batch=100)  # over accumulated batches
    assert float(counted.loss) == pytest.approx(float(given.loss) * int((labels >= 0).sum()) / 100)
    with pytest.raises(ValueError, match="decoder_input_ids, or labels"):
        model(ids)


def test_generated_text_is_the_best_next_token_each_time() -> None:
    model, plain = fresh("writer", pad_token_id=0), lively("writer")
    ids = torch.tensor([[7, 8, 9]])
    found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=5, do_sample=False)
    with torch.no_grad():
        for _ in range(5):
            ids = torch.cat((ids, plain(ids)[:, -1:].argmax(-1)), 1)
    assert found.tolist() == ids.tolist()


@pytest.mark.parametrize("beams", [1, 3])
def test_a_translator_generates_what_ours_writes(beams: int) -> None:
    model, plain = fresh("translator", pad_token_id=0, eos_token_id=2, decoder_start_token_id=1), lively("translator")
    ids, mask = tokens(4)
    options = {"max_new_tokens": 6, "do_sample": False, "num_beams": beams, "attention_mask": mask}
    found = model.generate(ids, **options)
    assert found.tolist() == model.generate(ids, use_cache=False, **options).tolist()
    assert set(found[:, 0].tolist()) == {1}
    if beams == 1:
        wanted = generate(plain, ids, mask, GenerationSettings(begin=1, end=2, length=6))
        assert [[token for token in row[1:] if token not in (0, 2)] for row in found.tolist()] == [
            [token for token in row if token != 0] for row in wanted
        ]


def test_a_cache_of_the_writer_goes_on_in_pieces() -> None:
    model = fresh("writer").eval()
    ids = tokens(3)[0][:1]
    with torch.no_grad():
        whole, first = model(ids), model(ids[:, :5], use_cache=True)
        second = model(ids[:, 5:], past_key_values=first.past_key_values)
    assert whole.past_key_values is None
    assert (torch.cat((first.logits, second.logits), 1) - whole.logits).abs().max() < 1e-5


def test_outputs_of_another_encoder_are_refused() -> None:
    model, (ids, mask) = fresh("translator"), tokens()
    encoded = model.get_encoder()(ids, mask)
    with torch.no_grad():
        expected = model(ids, mask, decoder_input_ids=ids).logits
        found = model(attention_mask=mask, decoder_input_ids=ids, encoder_outputs=encoded).logits
    assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="get_encoder"):
        model(decoder_input_ids=ids, encoder_outputs=transformers.modeling_outputs.BaseModelOutput(encoded[0]))
    with pytest.raises(ValueError, match="pass input_ids"):
        model(decoder_input_ids=ids)


def test_another_head_starts_fresh_on_the_same_encoder(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = fresh("bert-masked")
    model.save_pretrained(tmp_path)
    state = torch.get_rng_state()
    loaded, report = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path, num_labels=7, output_loading_info=True
    )
    assert report["missing_keys"] == {"head.output.weight", "head.output.bias"}
    assert torch.equal(loaded.transformer.pooler.weight, model.transformer.pooler.weight)
    assert loaded.head.output.weight.shape == (7, 16)
    assert 0.01 < float(loaded.head.output.weight.detach().std()) < 0.03
    assert not loaded.head.output.bias.any()
    assert not torch.equal(state, torch.get_rng_state())  # seeded as everything of transformers is


def test_a_module_with_some_weights_given_keeps_them(tmp_path: Path) -> None:
    model = fresh("bert-masked")
    weights = model.state_dict()
    bias = weights.pop("head.bias")
    model.save_pretrained(tmp_path, state_dict=weights)
    loaded, report = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert report["missing_keys"] == {"head.bias"}
    assert not loaded.head.bias.any()
    assert bias.any()
    assert torch.equal(loaded.head.dense.weight, model.head.dense.weight)
    assert torch.equal(loaded.head.norm.weight, model.head.norm.weight)


def test_fresh_models_start_as_ours_do() -> None:
    for name in ("varied", "translator"):
        card, spec = DESIGNS[name]
        kind = getattr(models, class_name(card, spec.task if spec else None))
        theirs = kind(FormwrightConfig(card.to_json(), num_labels=1)).state_dict()
        for key, weight in build(card, head=spec).state_dict().items():
            if weight.numel() < 2 or not weight.std():  # norms and biases
                assert torch.equal(theirs[key], weight), key
            else:
                assert 0.4 < float(theirs[key].std() / weight.std()) < 2.5, key
                assert not torch.equal(theirs[key], weight), key


def test_tables_are_found_shared_and_never_resized(tmp_path: Path) -> None:
    model = fresh("bert-masked")
    assert model.get_input_embeddings().weight.shape == (VOCABULARY, 16)
    assert model.get_output_embeddings() is None
    with pytest.raises(IllegalInput, match="the card fixes the vocabulary"):
        model.resize_token_embeddings(60)
    assert fresh("viewer").get_input_embeddings().weight.shape == (16, 3 * 4 * 4)
    fresh("translator").save_pretrained(tmp_path)
    transformer = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).transformer
    assert transformer.decoder.embedding.tokens.weight is transformer.encoder.embedding.tokens.weight


def test_a_task_that_the_design_cannot_do_is_refused(tmp_path: Path) -> None:
    fresh("bert").save_pretrained(tmp_path)
    with pytest.raises(IllegalInput, match="causal-lm needs a design of family decoder"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def test_outputs_may_be_a_tuple_and_missing_inputs_are_named() -> None:
    ids, mask = tokens()
    (logits,) = fresh("bert")(ids, attention_mask=mask, return_dict=False)
    assert logits.shape == (3, 3)
    with pytest.raises(ValueError, match="this model reads input_ids"):
        fresh("bert-bare")()


def test_gradients_flow_and_the_model_learns() -> None:
    model = fresh("bert")
    model.train()
    ids, mask = tokens()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        loss = model(ids, attention_mask=mask, labels=torch.tensor([0, 2, 1])).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("name", ["bert", "bert-bare", "writer", "viewer", "translator"])
def test_what_is_not_supported_is_refused_and_not_ignored(name: str) -> None:
    ids, _ = tokens()
    inputs = {"pixel_values": images()} if name == "viewer" else {"input_ids": ids}
    inputs |= {"decoder_input_ids": ids} if name == "translator" else {}
    model = fresh(name)
    with pytest.raises(ValueError, match="position_ids is not supported by Formwright"):
        model(**inputs, position_ids=torch.arange(9)[None])
    with pytest.raises(ValueError, match="output_attentions is not supported"):
        model(**inputs, output_attentions=True)
    model(**inputs, output_attentions=False, past_key_values=None)
