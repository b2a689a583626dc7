import gc
from pathlib import Path

import pytest
import torch
from tests.nn.cases import MIXERS, block, stack

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn import measure as measuring
from formwright.nn.build import build
from formwright.nn.deploy import Runtime
from formwright.nn.heads import HeadSpec
from formwright.nn.measure import Trial, cpu_name, measure

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
    found = measure(model, batch=2, length=9, threads=2, runs=20, warmup=3, memory=False)
    assert seen == [(False, True, 2, True)] * 3 + [(False, True, 2, False)] * 20
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
        measure(model, length=5, threads=before + 1, memory=False)
    assert (model.training, torch.get_num_threads(), gc.isenabled()) == (True, before, True)


def test_longer_sentences_take_longer() -> None:
    model = build(Card(Stack(TokenEmbedding(100, 64), (Block(64, Attention(2, 32), (256,)),) * 2)))
    short, long = (measure(model, batch=8, length=length, runs=15, memory=False).low_ms for length in (4, 256))
    assert long > 3 * short


def test_interval_and_drift() -> None:
    times = [float(number) for number in range(101)]
    found = measuring._latency(times, Trial(runs=101), "torch", 1.5)
    assert (found.low_ms, found.median_ms, found.high_ms) == (5.0, 50.0, 95.0)
    assert found.drift == pytest.approx(75 / 24.5 - 1)
    assert found.peak_memory_mb == 1.5
    assert measuring._latency([2.0] * 10, Trial(runs=10), "torch", None).drift == 0


@pytest.mark.parametrize("trial", [{"threads": 0}, {"runs": 1}, {"warmup": -1}])
def test_a_trial_that_measures_nothing_is_refused(trial: dict[str, int]) -> None:
    with pytest.raises(IllegalInput, match="at least 1 thread, 2 runs and 0 warm-up"):
        Trial(**trial)


@pytest.mark.parametrize("runtime", ["torch", "onnxruntime"])
def test_what_the_design_cannot_read_is_refused_at_once(runtime: Runtime) -> None:
    with pytest.raises(IllegalInput, match="positions for 64"):
        measure(build(CARD), length=65, runtime=runtime)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_other_runtimes(runtime: Runtime) -> None:
    found = measure(build(CARD), batch=2, length=9, runtime=runtime, runs=10)
    assert found.runtime == runtime
    assert 0 < found.low_ms <= found.median_ms <= found.high_ms < 1000
    assert found.peak_memory_mb is None or 0 < found.peak_memory_mb < 500


def test_the_processor_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpu_name()

    def absent(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert cpu_name() == "abacus"


@pytest.mark.parametrize("trial", [{"threads": 99_999}, {"batch": 10**8}, {"length": 10**30}])
def test_what_no_machine_could_run_is_refused(trial: dict[str, int]) -> None:
    with pytest.raises(IllegalInput, match="at most 1024 threads and 16,777,216 tokens"):
        Trial(**trial)
