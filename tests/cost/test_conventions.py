from dataclasses import FrozenInstanceError

import pytest
from numpy.random import default_rng
from tests.cost.cases import CARDS

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention, Identity, Relative
from formwright.core.errors import IllegalInput, UnknownName
from formwright.cost import (
    COSTS,
    all_costs,
    counted_costs,
    electra_flops,
    is_measured,
    limit,
    macs,
    params,
    params_attention,
    params_body,
    params_with_mlm_head,
)
from formwright.cost.conventions import autoformer_flops, vitas_flops
from formwright.space.zoo import load_card, load_space

BERT = load_card("bert-tiny")
NAMES = [
    "autoformer", "electra", "flops", "macs", "params", "params-attention", "params-body", "params-with-mlm-head",
    "vitas",
]  # fmt: skip
FLEXIBERT = load_space("flexibert")


def bert(width: int, layers: int, heads: int, hidden: int, table: int | None = None, head_width: int = 64) -> Card:
    block = Block(width, Attention(heads, head_width), (hidden,))
    return Card(Stack(TokenEmbedding(30_522, width, factorised=table, types=2), (block,) * layers))


SMALL = bert(256, 12, 4, 1024, table=128)


@pytest.mark.parametrize(
    ("card", "published"),
    [(load_card("bert-base"), 2.862e10), (load_card("bert-large"), 8.747e10), (SMALL, 3.677e9)],
    ids=["base", "large", "small-256"],
)
def test_published_counts(card: Card, published: float) -> None:
    assert float(f"{electra_flops(card, 128):.3e}") == published


def test_without_the_dense_lookup_bert_base_takes_what_is_published() -> None:
    lookup = 128 * 2 * 768 * 30_522
    assert float(f"{electra_flops(load_card('bert-base')) - lookup:.3e}") == 2.262e10


def slow_count(width: int, layers: int, heads: int, hidden: int, table: int, head_width: int, length: int) -> int:
    """Count token by token and head by head, term by term as the publication describes them."""
    dropout, norm, activation, softmax = 4, 5, 8, 5
    once = 2 * table * 30_522 + 2 * table * 2 + 2 * table * length + 2 * table + norm * table + dropout * table
    if table != width:
        once += 2 * table * width + width
    for _ in range(layers):
        for _ in range(heads):
            once += 3 * head_width * (2 * width + 1)  # query, key and value with biases
            once += length * (2 * head_width + softmax + dropout + 1)  # scores, their softmax, dropout and scale
        once += length * 2 * width  # weighted sum of values
        once += width * (2 * width + 1 + dropout + 1) + norm  # output map, bias, dropout, residual, one norm
        once += hidden * (2 * width + 1 + activation)
        once += width * (2 * hidden + 1 + dropout + 1 + norm)
    once += width * (2 * width + 1 + activation + 2)  # the classifier
    return once * length


@pytest.mark.parametrize("length", [1, 64, 128])
@pytest.mark.parametrize(
    ("width", "layers", "heads", "hidden", "table", "head_width"),
    [(128, 2, 2, 512, 128, 64), (256, 3, 4, 1000, 64, 64), (96, 1, 5, 77, 96, 16)],
)
def test_counts_term_by_term(
    width: int, layers: int, heads: int, hidden: int, table: int, head_width: int, length: int
) -> None:
    card = bert(width, layers, heads, hidden, None if table == width else table, head_width)
    assert electra_flops(card, length) == slow_count(width, layers, heads, hidden, table, head_width, length)


@pytest.mark.parametrize("name", ["patches", "decoder", "translation", "frames"])
def test_what_is_no_text_encoder_is_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=rf"{CARDS[name].family} design.*macs or flops"):
        electra_flops(CARDS[name])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ((Block(32, Identity(), (64,)),), "one feed-forward layer"),
        ((Block(32, Attention(2, 16)),), "one feed-forward layer"),
        ((Block(32, Attention(2, 16), (64, 64)),), "one feed-forward layer"),
        (CARDS["cells"].stacks[0].layers[:1], "one feed-forward layer"),
        ((Block(32, Attention(2, 16, "wma"), (64,)),), "scaled dot products"),
        ((Block(32, Attention(2, 16, relative=Relative(9)), (64,)),), "relative positions"),
        ((Block(32, Attention(2, 16), (64,)), Block(48, Attention(2, 16), (64,))), "one width"),
    ],
    ids=["no attention", "no feed-forward", "two feed-forwards", "cell", "wma", "relative", "two widths"],
)
def test_layers_it_does_not_know_are_refused(blocks: tuple[Layer, ...], message: str) -> None:
    positions = "relative" if message == "relative positions" else "learned"
    with pytest.raises(IllegalInput, match=message):
        electra_flops(Card(Stack(TokenEmbedding(100, 32, positions=positions), blocks)))


def test_conventions_are_known_by_the_names_they_give_themselves() -> None:
    assert counted_costs() == NAMES
    measured = ["latency_ms", "onnx_batch8_ms", "writing_30x5_ms"]
    assert COSTS.names() == sorted([*NAMES, *measured])
    assert all(is_measured(name) and COSTS.get(name).name == name for name in measured)
    for name in NAMES:
        convention = COSTS.get(name)
        assert convention.name == name
        assert convention.unit in {"parameters", "multiply-accumulates", "operations"}
        assert convention.about


def test_each_name_counts_what_it_says() -> None:
    assert all_costs(BERT, 40) == {
        "electra": electra_flops(BERT, 40),
        "flops": 2 * macs(BERT, 40),
        "macs": macs(BERT, 40),
        "params": params(BERT),
        "params-attention": params_attention(BERT),
        "params-body": params_body(BERT),
        "params-with-mlm-head": params_with_mlm_head(BERT),
    }


def test_a_count_is_exact_has_a_unit_and_a_default_length() -> None:
    measure = COSTS.get("macs")(BERT, 40)
    assert (measure.value, measure.unit, measure.interval) == (macs(BERT, 40), "multiply-accumulates", None)
    assert type(measure.value) is int
    assert COSTS.get("macs")(BERT).value == macs(BERT, 128)
    assert all_costs(BERT) == all_costs(BERT, 128)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, -3])
def test_sentences_without_tokens_are_refused(name: str, length: int) -> None:
    with pytest.raises(IllegalInput, match=f"at least 1, not {length}"):
        COSTS.get(name)(BERT, length)
    with pytest.raises(IllegalInput, match=f"at least 1, not {length}"):
        all_costs(BERT, length)


@pytest.mark.parametrize(
    ("card", "missing"),
    [
        ("patches", {"electra", "params-with-mlm-head", "vitas"}),
        ("mixed", {"autoformer", "electra", "vitas"}),
        ("translation", {"autoformer", "electra", "vitas"}),
    ],
)
def test_conventions_that_do_not_know_a_design_are_left_out(card: str, missing: set[str]) -> None:
    assert set(all_costs(CARDS[card])) == set(NAMES) - missing


def test_faults_of_conventions() -> None:
    with pytest.raises(IllegalInput, match="ELECTRA's counter"):
        COSTS.get("electra")(CARDS["mixed"])
    with pytest.raises(UnknownName, match=r"no cost called 'parms'. Nearest: 'params'. .*`formwright list costs`"):
        COSTS.get("parms")
    with pytest.raises(FrozenInstanceError):
        COSTS.get("params").name = "other"  # type: ignore[misc]


def test_a_convention_that_cannot_be_loaded_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def names(self) -> list[str]:
            return ["broken"]

        def get(self, name: str) -> None:
            raise IllegalInput(f"the cost {name!r} cannot be loaded")

    monkeypatch.setattr("formwright.cost.conventions.COSTS", Broken())
    with pytest.raises(IllegalInput, match="the cost 'broken' cannot be loaded"):
        all_costs(load_card("bert-tiny"))


def test_a_limit_is_a_name_and_a_test_of_cards() -> None:
    name, holds = limit("params<=5e6")
    assert name == "params<=5e6"
    assert holds(load_card("bert-tiny"))
    assert not holds(load_card("bert-mini"))


@pytest.mark.parametrize(("shift", "held"), [(-1, False), (0, True), (1, True)])
def test_the_limit_itself_is_allowed(shift: int, held: bool) -> None:
    card = load_card("bert-base")
    assert limit(f"params<={params(card) + shift}")[1](card) is held
    assert limit(f"params>={params(card) - shift}")[1](card) is held


def test_operations_are_counted_at_the_length_asked_for() -> None:
    card = load_card("bert-base")
    bound = f"macs<={macs(card, 64)}"
    assert limit(bound, length=64)[1](card)
    assert not limit(bound)[1](card)
    assert limit(f"macs<={macs(card, 128)}")[1](card)


@pytest.mark.parametrize("text", ["params:min", "macs:max"])
def test_a_goal_is_no_limit(text: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{text}'"):
        limit(text)


@pytest.mark.parametrize("text", ["params", "params<5", "params<=many", "params<=inf", ""])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput):
        limit(text)


def test_an_unknown_cost_is_named_at_once() -> None:
    with pytest.raises(UnknownName, match=r"'parameters'. Nearest: 'params"):
        limit("parameters<=5e6")


def test_every_operator_of_a_restricted_space_obeys_the_limit() -> None:
    space = FLEXIBERT.restrict(*limit("params<=1e7"))
    rng = default_rng(0)
    designs = [space.sample(rng) for _ in range(50)]
    children = [space.mutate(design, rng) for design in designs]
    crossed = [space.crossover(*pair, rng) for pair in zip(designs, children, strict=True)]
    near = list(space.neighbours(designs[0]))
    for design in [*designs, *children, *crossed, *near]:
        assert params(space.card(design)) <= 10_000_000
        assert space.contains(design)


def test_limits_add_up_and_count() -> None:
    small = FLEXIBERT.restrict(*limit("params<=1e7"))
    smaller = small.restrict(*limit("macs<=2e8"))
    costs = [(params(card), macs(card)) for card in map(FLEXIBERT.card, FLEXIBERT.enumerate())]
    assert small.count() == sum(size <= 1e7 for size, _ in costs) > 0
    assert smaller.count() == sum(size <= 1e7 and work <= 2e8 for size, work in costs) > 0
    assert smaller.count() < small.count() < FLEXIBERT.count()


@pytest.mark.parametrize("name", ["patches", "mixed", "decoder", "translation", "frames"])
def test_the_counter_of_vitas_refuses_other_designs(name: str) -> None:
    with pytest.raises(IllegalInput, match="macs or flops"):
        vitas_flops(CARDS[name])


def test_the_counter_of_vitas_leaves_out_the_class_token() -> None:
    card = load_card("vitas-c")
    patches, width, inner, hidden = 196, 230, 144, 720
    layer = (
        3 * patches * width * inner + 2 * patches**2 * inner + patches * inner * width + 2 * patches * width * hidden
    )
    assert vitas_flops(card) == patches * 768 * width + 12 * layer + patches * width * 1_000


# what the authors' `get_complexity(196)` gives for their configuration files of the three models
AUTHORS = {"t": 1_344_034_362, "s": 4_892_144_730, "b": 11_236_929_660}


@pytest.mark.parametrize("size", AUTHORS)
def test_the_counter_of_autoformer_counts_as_the_authors_code(size: str) -> None:
    card = load_card(f"autoformer-{size}")
    assert autoformer_flops(card) == COSTS.get("autoformer")(card).value == AUTHORS[size]
    assert macs(card) > AUTHORS[size]  # which counts each head's relative positions


def pictures(*layers: Block, **embedding: object) -> Card:
    patches = PatchEmbedding(**{"image": 8, "patch": 2, "width": 32, "channels": 1, **embedding})  # type: ignore[arg-type]
    return Card(Stack(patches, layers))


PLAIN_BLOCK = Block(32, Attention(2, 16), (64,), norm="pre")


def test_each_term_of_autoformers_counter() -> None:
    places, width, inner, hidden = 17, 32, 32, 64  # 4 x 4 patches and a class token
    whole = width + 16 * 4 * width + places * width // 2
    tokens = places + 1
    layer = 2 * tokens * width + 4 * tokens * width * inner + 2 * tokens**2 * inner + 2 * tokens * width * hidden
    assert autoformer_flops(pictures(PLAIN_BLOCK)) == whole + layer
    far = Relative(rows=2 * 4 + 2, axes=2, values=True)
    positions = 2 * 4 * tokens**2 + tokens**2 // 2 + tokens * inner // 2
    block = Block(32, Attention(2, 16, relative=far), (64,), norm="pre")
    assert autoformer_flops(pictures(block, block)) == whole + 2 * (layer + positions)


@pytest.mark.parametrize(
    "card",
    [
        *(CARDS[name] for name in ("mixed", "decoder", "translation", "frames")),
        pictures(PLAIN_BLOCK, class_tokens=2),
        pictures(PLAIN_BLOCK, positions="sinusoidal"),
        pictures(Block(32, Identity(), (64,))),
        pictures(Block(32, Attention(2, 16), (64, 64))),
        pictures(Block(32, Attention(2, 16))),
        pictures(Block(32, Attention(2, 16, "wma"), (64,))),
        pictures(Block(32, Attention(2, 16, relative=Relative(9)), (64,))),
        pictures(PLAIN_BLOCK, Block(48, Attention(2, 16), (64,))),
    ],
)
def test_the_counter_of_autoformer_refuses_other_designs(card: Card) -> None:
    with pytest.raises(IllegalInput, match="macs or flops"):
        autoformer_flops(card)
