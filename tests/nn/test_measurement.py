import gc
from pathlib import Path

import pytest
import torch
from tests.nn.cases import MIXERS, WIDTH, block, stack

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalInput
from formwright.nn import measurement
from formwright.nn.build import build
from formwright.nn.deploy import Runtime
from formwright.nn.measurement import TimingSettings, cpu_name, measure, measure_in_turns

CARD = Card(stack((block(MIXERS["sdp"], "post"),)), pooler=True)


def test_a_model_is_measured_and_left_as_it_was() -> None:
    model = build(CARD, head=HeadSpec("sequence-classification")).train()
    before = torch.get_num_threads()
    seen = []
    model.register_forward_pre_hook(
        lambda module, _: seen.append(
            (module.training, torch.is_inference_mode_enabled(), torch.get_num_threads(), gc.isenabled())
        )
    )
    found = measure(model, TimingSettings(2, 9, 2, runs=20, warmup=3), memory=False)
    assert seen == [(False, True, 2, True)] * 3 + [(False, True, 2, False)] * 24  # four of them bring caches back
    assert (model.training, torch.get_num_threads(), gc.isenabled()) == (True, before, True)
    assert not torch.is_inference_mode_enabled()
    assert 0 < found.low_ms <= found.median_ms <= found.high_ms < 1000
    assert (found.runs, found.threads, found.runtime, found.cpu) == (20, 2, "torch", cpu_name())
    assert found.peak_memory_mb is None


def test_a_failing_model_leaves_nothing_behind() -> None:
    model = build(CARD).train()
    before = torch.get_num_threads()
    model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measure(model, TimingSettings(length=5, threads=before + 1), memory=False)
    assert (model.training, torch.get_num_threads(), gc.isenabled()) == (True, before, True)


def test_longer_sentences_take_longer() -> None:
    model = build(Card(Stack(TokenEmbedding(100, 64), (Block(64, Attention(2, 32), (256,)),) * 2)))
    short, long = (measure(model, TimingSettings(8, length, runs=15), memory=False).median_ms for length in (4, 256))
    assert long > 3 * short


TRANSLATOR = Card(
    Stack(TokenEmbedding(50, 16), (Block(16, Attention(2, 8), (32,)),)),
    Stack(TokenEmbedding(50, 16), (Block(16, Attention(2, 8), (32,), cross=CrossAttention(2, 8)),), causal=True),
)
WRITER = Card(decoder=Stack(TokenEmbedding(50, 16, length=24), (Block(16, Attention(2, 8), (32,)),), causal=True))


@pytest.mark.parametrize("card", [TRANSLATOR, WRITER], ids=["encoder-decoder", "decoder"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_run_of_writing_reads_once_and_writes_every_token(card: Card, beams: int) -> None:
    head = HeadSpec("causal-lm" if card.encoder is None else "seq2seq-lm")
    model, reads, rows = build(card, head=head), [], []
    if model.transformer.encoder is not None:
        model.transformer.encoder.register_forward_pre_hook(lambda *_: reads.append(1))
    model.transformer.decoder.layers[0].register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    found = measure(model, TimingSettings(1, 7, runs=2, warmup=0, tokens=6, beams=beams))
    assert found.runs == 2
    assert rows == ([1] + [beams] * 5) * 3  # another one brings the caches back
    assert len(reads) == (0 if card.encoder is None else 3)
    assert found.peak_memory_mb is None


def test_more_tokens_take_longer_to_write() -> None:
    few, many = (measure(build(TRANSLATOR), TimingSettings(length=7, runs=4, tokens=tokens)) for tokens in (2, 20))
    assert many.median_ms > 3 * few.median_ms


@pytest.mark.parametrize(
    ("card", "runtime", "tokens"), [(CARD, "torch", 5), (WRITER, "torch", 25), (TRANSLATOR, "onnxruntime", 5)]
)
def test_what_cannot_be_written_is_refused(card: Card, runtime: Runtime, tokens: int) -> None:
    with pytest.raises(IllegalInput):
        measure(build(card), TimingSettings(length=5, tokens=tokens), runtime)
    with pytest.raises(IllegalInput):
        TimingSettings(beams=5)  # without tokens


def test_models_that_are_compared_are_measured_in_turns() -> None:
    seen: list[int] = []
    models = [build(CARD) for _ in range(2)]
    for number, model in enumerate(models):
        model.register_forward_pre_hook(lambda *_, number=number: seen.append(number))
    found = measure_in_turns(models, TimingSettings(length=5, runs=10, warmup=0))
    assert (seen, [one.runs for one in found]) == (([0] * 6 + [1] * 6) * 2, [10, 10])
    assert all(one.peak_memory_mb is None for one in found)


LEAST, MOST = "at least 1 thread, 2 runs and 0 warm-up", "at most 1024 threads and 16,777,216 tokens"
LITTLE = [({"threads": 0}, LEAST), ({"runs": 1}, LEAST), ({"warmup": -1}, LEAST)]
MUCH = [({"threads": 99_999}, MOST), ({"batch": 10**8}, MOST), ({"length": 10**30}, MOST)]


@pytest.mark.parametrize(("trial", "told"), [*LITTLE, *MUCH])
def test_a_trial_that_measures_nothing_or_too_much_is_refused(trial: dict[str, int], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        TimingSettings(**trial)


@pytest.mark.parametrize("runtime", ["torch", "onnxruntime"])
def test_what_the_design_cannot_read_is_refused_at_once(runtime: Runtime) -> None:
    with pytest.raises(IllegalInput, match="positions for 64"):
        measure(build(CARD), TimingSettings(length=65), runtime)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime", ["onnxruntime", pytest.param("openvino", marks=pytest.mark.long)])
def test_other_runtimes(runtime: Runtime) -> None:
    found = measure(build(CARD), TimingSettings(2, 9, runs=10), runtime)
    assert found.runtime == runtime
    assert 0 < found.low_ms <= found.median_ms <= found.high_ms < 1000
    assert found.peak_memory_mb is None or 0 < found.peak_memory_mb < 500


@pytest.mark.slow
def test_memory_is_about_the_weights_and_the_scores() -> None:
    card = Card(Stack(TokenEmbedding(1_000_000, WIDTH), (block(MIXERS["sdp"], "post"),)))
    peak = measure(build(card, head=HeadSpec("masked-lm")), TimingSettings(1, 8, runs=2, warmup=0)).peak_memory_mb
    weights, scores = 64.0, 32.0  # a million vectors of 16 numbers; 8 tokens times a million scores
    if Path("/proc").exists():
        assert peak is not None
        assert weights + scores <= peak < weights + scores + 60
    else:
        assert peak is None


def test_memory_is_unknown_if_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measurement, "_RESET", tmp_path / "absent")
    assert measure(build(CARD), TimingSettings(1, 5, runs=2, warmup=0)).peak_memory_mb is None


@pytest.mark.slow
def test_a_failure_of_the_new_process_is_reported(tmp_path: Path) -> None:
    if measurement._RESET.exists():
        with pytest.raises(RuntimeError, match=r"absent\.onnx"):
            measurement._in_new_process({"file": str(tmp_path / "absent.onnx")}, {}, 1)


def test_the_processor_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpu_name()

    def absent(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert cpu_name() == "abacus"
