import pytest
from tests.cli.conftest import Run

from formwright.arch.ops import all_operations
from formwright.arch.primitives import BINARY, UNARY
from formwright.core.options import STAGES
from formwright.cost import COSTS, macs, params
from formwright.pipeline.evaluators import EVALUATORS
from formwright.recipes import RECIPES
from formwright.search import SEARCHERS
from formwright.space.zoo import CARDS, SPACES, load_card, load_space
from formwright.supernet.lessons import LESSONS
from formwright.supernet.rules import RULES
from formwright.tasks import FROM_DATA, TASKS
from formwright.train.updates import UPDATES

PRIMITIVES = [*UNARY, *BINARY]
NAMES = {
    "spaces": SPACES.names(),
    "cards": CARDS.names(),
    "ops": [*all_operations(), *PRIMITIVES],
    "costs": COSTS.names(),
    "tasks": [*TASKS.names(), *FROM_DATA],
    "searchers": [name for name in SEARCHERS.names() if ":" not in name],
    "evaluators": EVALUATORS.names(),
    "stages": STAGES.names(),
    "rules": RULES.names(),
    "lessons": LESSONS.names(),
    "updates": UPDATES.names(),
    "recipes": RECIPES.names(),
}


@pytest.mark.parametrize("kind", NAMES)
def test_json_is_one_object_with_all_names(run: Run, kind: str) -> None:
    done = run("list", kind, "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.data) == [kind]
    assert sorted(entry["name"] for entry in done.data[kind]) == sorted(NAMES[kind])


@pytest.mark.parametrize("kind", NAMES)
def test_a_table_has_a_row_for_each_name(run: Run, kind: str) -> None:
    done = run("list", kind)
    assert (done.code, done.err) == (0, "")
    first_words = {line.split()[0] for line in done.out.splitlines() if line.split()}
    assert {"name", *NAMES[kind]} <= first_words
    assert "\x1b" not in done.out  # no colours where there is no terminal


def test_spaces_have_exact_counts_and_a_description(run: Run) -> None:
    for entry in run("list", "spaces", "--json").data["spaces"]:
        space = load_space(entry["name"])
        assert entry == {"name": space.name, "count": space.count(), "about": space.about}


def test_counts_are_written_for_people(run: Run) -> None:
    table = run("list", "spaces").out
    assert "3,317,817,600" in table
    assert "7.71e13" in table  # 3 (9^12 + 9^13 + 9^14)


def test_cards_have_a_family_and_costs(run: Run) -> None:
    for entry in run("list", "cards", "--json").data["cards"]:
        card = load_card(entry["name"])
        assert entry == {"name": entry["name"], "family": card.family, "params": params(card), "macs": macs(card)}


def test_operations_say_where_they_are_used(run: Run) -> None:
    entries = {entry["name"]: entry for entry in run("list", "ops", "--json").data["ops"]}
    assert entries["attention"]["use"] == "layer"
    assert entries["softmax"]["use"] == "op-graph, one operand"
    assert entries["matmul"]["use"] == "op-graph, two operands"
    assert all(entry["about"] for entry in entries.values())


def test_costs_have_a_unit(run: Run) -> None:
    for entry in run("list", "costs", "--json").data["costs"]:
        cost = COSTS.get(entry["name"])
        assert entry == {"name": cost.name, "unit": cost.unit, "about": cost.about}


def test_tasks_say_what_they_need(run: Run) -> None:
    entries = {entry["name"]: entry for entry in run("list", "tasks", "--json").data["tasks"]}
    assert entries["mini-glue/cola"]["rows"] == "builtin"
    assert entries["glue/cola"] == {
        "name": "glue/cola",
        "kind": "sequence-classification",
        "metric": "matthews",
        "rows": "--data DIR, or download",
        "about": "acceptability of a sentence",
    }
    assert entries["squad"]["rows"] == "--data DIR"


def test_recipes_name_their_papers(run: Run) -> None:
    entries = run("list", "recipes", "--json").data["recipes"]
    table = " ".join(run("list", "recipes").out.split())
    assert "paper" in table
    assert "So et al. 2019, The Evolved Transformer" in {one["paper"] for one in entries}
    for entry in entries:
        assert entry["command"] in ("search", "compress")
        assert entry["paper"] or entry["name"] == "plain"


@pytest.mark.parametrize("columns", [80, 120])
def test_no_word_of_a_recipe_is_cut(run: Run, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = run("list", "recipes", "--json").data["recipes"]
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("list", "recipes").out.splitlines()
    assert max(map(len, lines)) <= columns
    told = {word for entry in entries for name in ("name", "paper", "needs", "takes") for word in entry[name].split()}
    assert told <= set(" ".join(lines).split())


def test_what_cannot_be_listed_is_refused_with_what_can(run: Run) -> None:
    run("list", "spaecs").refused("spaecs", *NAMES)


@pytest.mark.parametrize(
    ("kind", "part", "option", "told"),
    [
        ("searchers", "regularized-evolution", "population", ("int", "50")),
        ("searchers", "cmaes", "startup", ("int", "10")),
        ("evaluators", "inherited", "least_overlap", ("float", "0.8")),
        ("stages", "search", "space", ("str | Stage | Any", "required")),
        ("stages", "search", "stop.trials", ("int | null", "30")),
        ("stages", "train", "training.batch", ("int", "32")),
        ("rules", "sandwich", "between", ("int", "1")),
        ("lessons", "distil", "temperature", ("float", "2.0")),
        ("recipes", "flexibert", "trials", ("int", "60")),
    ],
)
def test_options_have_types_and_defaults(run: Run, kind: str, part: str, option: str, told: tuple[str, str]) -> None:
    entries = {entry["name"]: entry for entry in run("list", kind, "--options", "--json").data[kind]}
    options = {one["name"]: one for one in entries[part]["options"]}
    assert (options[option]["type"], options[option]["default"]) == told
    shown = run("list", kind, "--options").out
    assert all(f"{name}: " in shown for name in NAMES[kind])
    assert option in shown


def test_every_option_of_a_searcher_has_help_and_what_the_study_gives_is_none_of_them(run: Run) -> None:
    for entry in run("list", "searchers", "--options", "--json").data["searchers"]:
        assert not {"space", "objectives", "legal", "sampler"} & {one["name"] for one in entry["options"]}
        assert all(one["about"] for one in entry["options"]), entry["name"]


def test_what_has_no_options_is_refused(run: Run) -> None:
    run("list", "spaces", "--options").refused("searchers", "evaluators", "stages", "recipes")
