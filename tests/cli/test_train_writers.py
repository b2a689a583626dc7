"""`formwright train` of models that generate, and what becomes of them in transformers."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.training import BOTH, DECODER, QUICK, card_file
from tests.tasks.test_corpora import pairs, texts

from formwright.evaluate.final import openings
from formwright.nn.generate import generate
from formwright.nn.hf.imported import load_folder
from formwright.nn.task_model import TaskModel
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.train.judge import generation_settings

SHORT = (*QUICK, "--steps", 3)


@pytest.mark.slow
def test_a_translator_is_trained_judged_by_what_it_writes_and_generates(run: Run, tmp_path: Path) -> None:
    import torch
    import transformers

    out = tmp_path / "out"
    command = ("train", card_file(tmp_path, BOTH), "--task", "multi30k", "--data", pairs(tmp_path / "multi30k", 8))
    done = run(*command, *SHORT, "--out", out, "--test", "--json").printed()
    assert list(done.data["metrics"]) == ["perplexity", "bleu"]
    assert list(done.data["test"]) == ["perplexity", "bleu"]
    again = run(*command, *SHORT, "--out", out, "--test", "--json")
    assert again.data["losses"] == done.data["losses"]
    beamed = run(*command, *SHORT, "--out", out, "--test", "--beams", 3, "--json")
    assert beamed.data["losses"] == done.data["losses"]  # the same run, judged otherwise
    assert (done.data["beams"], beamed.data["beams"]) == (1, 3)
    assert [len(one["name"].split("-3-beams")) for one in openings(out / "final")] == [1, 2]

    tokenizer = transformers.AutoTokenizer.from_pretrained(out / "model")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(out / "model").eval()
    asked = tokenizer(["train dog 0 ä.", "val dog"], padding=True, return_tensors="pt")
    found = model.generate(**asked, max_new_tokens=9)
    plain = load_folder(out / "model")
    assert isinstance(plain, TaskModel)
    own = generate(
        plain, asked["input_ids"], asked["attention_mask"], generation_settings(read_tokeniser(out / "model"), 9)
    )
    texts = tokenizer.batch_decode(found, skip_special_tokens=True)
    assert texts == [tokenizer.decode(tokens, skip_special_tokens=True) for tokens in own]
    assert model.generation_config.decoder_start_token_id == tokenizer.cls_token_id
    assert model.generation_config.eos_token_id == tokenizer.sep_token_id
    wanted = model.generate(**asked, max_new_tokens=9, num_beams=4)
    assert wanted.shape[0] == 2
    assert torch.equal(wanted[:, 0], found[:, 0])


@pytest.mark.slow
def test_a_writer_is_trained_and_goes_on_with_a_text(run: Run, tmp_path: Path) -> None:
    import transformers

    out = tmp_path / "out"
    folder = texts(tmp_path / "wikitext-2")
    (folder / "train.txt").write_text("Words of train , and more of them .\n" * 20, encoding="utf-8")
    done = run(
        *("train", card_file(tmp_path, DECODER), "--task", "wikitext-2", "--data", folder),
        *(*SHORT, "--out", out, "--json"),
    ).printed()
    assert list(done.data["metrics"]) == ["perplexity"]

    tokenizer = transformers.AutoTokenizer.from_pretrained(out / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(out / "model").eval()
    asked = tokenizer(["words of", "and"], padding=True, return_tensors="pt")
    assert asked["input_ids"][0, 0] == tokenizer.cls_token_id
    assert asked["attention_mask"][1].tolist() == sorted(asked["attention_mask"][1].tolist())
    assert tokenizer.sep_token_id not in asked["input_ids"]
    options = {"max_new_tokens": 5, "min_new_tokens": 5}
    found = model.generate(**asked, **options)
    assert found.shape == (2, asked["input_ids"].shape[1] + 5)
    assert found.tolist() == model.generate(**asked, use_cache=False, **options).tolist()
    run("train", out / "model", "--task", "wikitext-2", "--data", folder, *SHORT, "--out", tmp_path / "more").printed()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.long
def test_published_captions_are_learnt_from(run: Run, tmp_path: Path, data_dir: Path) -> None:
    done = run(
        *("train", "evolved-transformer-tiny", "--task", "multi30k", "--data", data_dir, "--rows", 200),
        *("--steps", 4, "--batch", 16, "--out", tmp_path / "out", "--json"),
    ).printed()
    assert done.data["metrics"].keys() == {"perplexity", "bleu"}


@pytest.mark.slow
def test_a_teacher_that_scores_another_number_of_tokens_is_refused(run: Run, tmp_path: Path) -> None:
    on = ("--task", "wikitext-2", "--data", texts(tmp_path / "wikitext-2"), *SHORT)
    assert run("train", card_file(tmp_path, DECODER), *on, "--out", tmp_path / "teacher").code == 0
    taught = ("--distil-from", tmp_path / "teacher" / "model", "--out", tmp_path / "out")
    assert DECODER.decoder is not None
    table = replace(DECODER.decoder.embedding, vocabulary=600)
    larger = replace(DECODER, decoder=replace(DECODER.decoder, embedding=table))
    run("train", card_file(tmp_path, larger, "larger.json"), *on, *taught).refused(
        "gives scores to 512 tokens, the student to 600"
    )
    assert not (tmp_path / "out").exists()
    assert run("train", card_file(tmp_path, DECODER), *on, *taught).code == 0
