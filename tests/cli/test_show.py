import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Run

from formwright.arch.card import Card
from formwright.arch.graph import graph_digest
from formwright.cost import all_costs, macs, params
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

Write = Callable[..., Path]
SVG = "{http://www.w3.org/2000/svg}svg"
ILLEGAL = {
    "schema": 1,
    "encoder": {
        "embedding": {"type": "tokens", "vocabulary": 0, "width": 64, "lenght": 5},
        "layers": [
            {"type": "block", "mixer": {"type": "atention"}},
            {"type": "block", "width": True, "mixer": {"type": "identity"}},
        ],
    },
    "pooler": "yes",
}


def test_a_card_as_json(run: Run) -> None:
    done = run("show", "bert-base", "--json")
    card = load_card("bert-base")
    assert (done.code, done.err) == (0, "")
    assert done.data == {
        "kind": "card",
        "name": "bert-base",
        "family": "encoder",
        "digest": card.digest,
        "graph_digest": graph_digest(card),
        "length": 128,
        "params": 109_482_240,
        "macs": macs(card, 128),
        "costs": all_costs(card, 128),
        "card": card.to_json(),
    }


def test_a_card_as_a_drawing_with_costs_and_digests(run: Run) -> None:
    card = load_card("flexibert-mini")
    done = run("show", "flexibert-mini")
    assert (done.code, done.err) == (0, "")
    for fact in ("flexibert-mini", "16,159,040", f"{macs(card):,}", "128 tokens", card.digest, graph_digest(card)):
        assert fact in done.out
    assert "256" in done.out
    assert "\x1b" not in done.out  # no colours where there is no terminal


@pytest.mark.parametrize("columns", [120, 80, 60, 48])
def test_formulas_are_printed_whole_at_every_width(columns: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name, formula in (
        ("autobert-zero-layer-2", "softmax(Q·softplus(Kᵀ) / √d)·(K + Q)"),
        ("autobert-zero-layer-12", "softmax(Q·(K / √d + V)ᵀ / √d)·V"),
    ):
        drawn = [line.partition("│")[2].partition("│")[2] for line in run("show", name).out.splitlines()]
        assert formula.replace(" ", "") in "".join(drawn).replace(" ", "")


def test_an_image_is_not_counted_in_tokens(run: Run, tmp_path: Path) -> None:
    done = run("show", "autoformer-t", "--svg", tmp_path / "drawing.svg")
    assert "counted at 224 x 224 pixels" in done.out
    assert "MACs at 224 x 224 pixels" in (tmp_path / "drawing.svg").read_text(encoding="utf-8")


def test_length_changes_operations_and_not_parameters(run: Run) -> None:
    short, long = (run("show", "bert-mini", "--json", "--length", length).data for length in (16, 512))
    card = load_card("bert-mini")
    assert short["params"] == long["params"] == params(card)
    assert (short["macs"], long["macs"]) == (macs(card, 16), macs(card, 512))
    assert (short["length"], long["length"]) == (16, 512)
    assert short["digest"] == long["digest"]


@pytest.mark.parametrize("name", CARDS.names())
def test_every_published_card_can_be_shown(run: Run, name: str) -> None:
    done = run("show", name)
    assert (done.code, done.err) == (0, "")
    assert load_card(name).digest in done.out


def test_a_card_file_is_shown_like_a_published_card(run: Run, write: Write) -> None:
    path = write(load_card("transformer-base").to_json())
    by_file, by_name = run("show", path, "--json").data, run("show", "transformer-base", "--json").data
    assert by_file.pop("name") == "mine"
    assert by_name.pop("name") == "transformer-base"
    assert by_file == by_name


def test_what_is_shown_can_be_read_back(run: Run, write: Write) -> None:
    shown = run("show", "evolved-transformer-base", "--json").data
    assert Card.from_json(shown["card"]).digest == shown["digest"]
    for kept in (shown["card"], shown):
        assert run("show", write(kept), "--json").data["digest"] == shown["digest"]


@pytest.mark.parametrize("name", SPACES.names())
def test_every_space_as_json(run: Run, name: str) -> None:
    data = run("show", name, "--json").data
    space = load_space(name)
    assert (data["kind"], data["name"], data["count"], data["about"]) == ("space", name, space.count(), space.about)
    assert data["samples"] == []
    assert data["genes"]


def test_a_space_as_a_table(run: Run) -> None:
    done = run("show", "flexibert")
    assert (done.code, done.err) == (0, "")
    for fact in ("flexibert: ", "9,312 designs", "layers.length", "groups of 2", "operation=sa", "sdp, wma"):
        assert fact in done.out


def test_samples_are_designs_of_the_space_with_their_costs(run: Run) -> None:
    space = load_space("flexibert-s1")
    samples = run("show", "flexibert-s1", "--sample", 3, "--json", "--length", 32).data["samples"]
    assert len(samples) == 3
    for sample in samples:
        card = space.card(space.from_json(sample["design"]))
        assert (sample["digest"], sample["graph_digest"]) == (card.digest, graph_digest(card))
        assert (sample["params"], sample["macs"]) == (params(card), macs(card, 32))


def test_samples_repeat_with_the_seed_and_differ_without(run: Run) -> None:
    line = ("show", "flexibert-s1", "--sample", 2, "--seed")
    assert run(*line, 3).out == run(*line, 3).out
    samples = [run(*line, seed, "--json").data["samples"] for seed in (3, 3, 4)]
    designs = [[sample["design"] for sample in drawn] for drawn in samples]
    assert designs[0] == designs[1] != designs[2]


def test_fewer_samples_are_the_first_of_more(run: Run) -> None:
    few, many = (run("show", "hat", "--sample", number, "--seed", 3, "--json").data["samples"] for number in (1, 3))
    assert many[:1] == few
    assert len({sample["digest"] for sample in many}) == 3


@pytest.mark.parametrize(
    "options", [["flexibert-mini"], ["evolved-transformer-nano", "--sample", "1"], ["autoformer-t"]]
)
def test_svg_is_written_beside_what_is_printed(run: Run, tmp_path: Path, options: list[str]) -> None:
    target = tmp_path / "drawing.svg"
    plain, drawn = run("show", *options), run("show", *options, "--svg", target)
    assert drawn == plain
    assert ElementTree.parse(target).getroot().tag == SVG


def test_the_svg_holds_the_name_and_the_costs(run: Run, write: Write, tmp_path: Path) -> None:
    target = tmp_path / "drawing.svg"
    path = write(load_card("bert-tiny").to_json(), "a <b> & 'c'.json")
    assert run("show", path, "--svg", target, "--length", 16, "--json").code == 0
    words = " ".join(ElementTree.parse(target).getroot().itertext())
    for fact in ("a <b> & 'c'", "4,385,920", f"{macs(load_card('bert-tiny'), 16):,}", "16 tokens"):
        assert fact in words


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("bert-base", "--sample", 1), ("bert-base is a single design; --sample draws from a space",)),
        (("flexibert", "--length", 0), ("--length",)),
        (("flexibert", "--length", "many"), ("--length",)),
        (("flexibert", "--sample", -1), ("--sample",)),
        (("flexibert", "--seed", -1), ("--seed",)),
        (("hat", "--length", "9" * 400), ("--length",)),
        (("hat", "--sample", "9" * 20), ("--sample",)),
        (("flexbert", "--json"), ("no space, card or file is called 'flexbert'. Nearest: 'flexibert'.",)),
        (("bert-bose", "--json"), ("no space, card or file is called 'bert-bose'. Nearest: 'bert-base'.",)),
        (("./absent.json",), ("formwright: cannot read ", "absent.json", "No such file")),
        (("./",), ("formwright: ./ is a folder", "task:./")),
        (("bert-tiny", "--svg", "."), ("formwright: cannot write .: ",)),
        (("bert-tiny", "--svg", "absent/drawing.svg"), ("formwright: cannot write absent/drawing.svg: ",)),
        (("hat", "--sample", 1, "--json", "--svg", "absent/drawing.svg"), ("absent/drawing.svg",)),
        (("flexibert", "--svg", "drawing.svg", "--sample", 0), ("--sample 1",)),
        (("flexibert", "--svg", "drawing.svg", "--sample", 2), ("--sample 1",)),
    ],
    ids=str,
)
def test_users_errors(run: Run, arguments: Any, facts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("show", *arguments).refused(*facts)
    assert list(tmp_path.iterdir()) == []


def test_every_fault_of_a_card_is_listed_with_its_place(run: Run, write: Write, tmp_path: Path) -> None:
    path, target = write(ILLEGAL), tmp_path / "drawing.svg"
    done = run("show", path, "--svg", target).refused()
    first, *faults = done.err.splitlines()
    assert first == f"formwright: illegal card in {path}, 6 faults:"
    assert sorted(fault.strip().split(": ")[0] for fault in faults) == [
        "encoder.embedding.lenght",
        "encoder.embedding.vocabulary",
        "encoder.layers[0].mixer.type",
        "encoder.layers[0].width",
        "encoder.layers[1].width",
        "pooler",
    ]
    assert "did you mean 'length'?" in done.err
    assert "Nearest: 'attention'" in done.err
    assert not target.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"schema": 1,', "is not JSON that can be read"),
        ({"schema": 99}, "Update formwright to read this card"),
        ({"schema": 1}, "needs an encoder, a decoder, or both"),
    ],
)
def test_what_is_no_card_is_a_users_error(run: Run, write: Write, content: object, message: str) -> None:
    path = write(content)
    run("show", path).refused(f"illegal card in {path}, 1 fault", message)


def test_a_drawing_does_not_overwrite_its_card(run: Run, write: Write) -> None:
    path = write(load_card("bert-tiny").to_json())
    before = path.read_bytes()
    run("show", path, "--svg", path).refused("over the card")
    assert path.read_bytes() == before


def test_the_folder_of_a_model_shows_its_design(run: Run, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(load_card("bert-tiny").to_json()), encoding="utf-8")
    done, known = run("show", str(tmp_path), "--json"), run("show", "bert-tiny", "--json")
    assert (done.code, done.data["params"]) == (0, known.data["params"])
