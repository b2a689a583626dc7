"""What every recipe promises, as a test class to inherit from.

    class TestMine(RecipeContract):
        recipe = mine

        def arguments(self) -> dict[str, Any]:
            return {"task": TaskChoice("mini-glue/rte")}

Run it with pytest. Nothing is trained.
"""

import inspect
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import pytest

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.recipes.recipe import Recipe


class RecipeContract(ABC):
    """Check that a recipe composes a pipeline that is plain data, says what it is, and can be run."""

    recipe: ClassVar[Recipe]
    most_lines: ClassVar[int] = 80  # of the file without its docstring
    settled: ClassVar[bool] = True  # whether its stages can be settled and checked without data or a model

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Give what the recipe has to be given."""

    def compose(self, **options: Any) -> Pipeline:
        """Compose the pipeline with further options."""
        return type(self).recipe(**{**self.arguments(), **options})

    def test_it_composes_a_pipeline_of_its_name(self) -> None:
        made = self.compose()
        assert isinstance(made, Pipeline)
        assert made.recipe == type(self).recipe.name
        assert made == self.compose(), "two compositions differ"

    def test_its_pipeline_is_plain_data(self) -> None:
        made = self.compose()
        for whole in (False, True):
            again = Pipeline.from_json(json.loads(json.dumps(made.to_json(whole=whole))))
            assert again == made
        assert again.to_json() == made.to_json()

    def test_a_list_of_methods_can_say_what_it_is(self) -> None:
        one = type(self).recipe
        for fact in ("name", "about", "paper", "needs", "takes"):
            assert getattr(one, fact), f"{one.name} says nothing of {fact}"
        assert one.command in {"search", "compress", "train"}
        unknown = [option for option in one.options if not one.meaning(option)]
        assert not unknown, f"{one.name} does not say what {', '.join(unknown)} mean"

    def test_it_is_a_short_file_that_lists_what_differs_from_the_paper(self) -> None:
        module = inspect.getmodule(type(self).recipe.compose)
        assert module is not None
        assert module.__doc__, "a recipe cites its paper and lists every deviation"
        assert type(self).recipe.compose.__doc__
        lines = inspect.getsource(module).splitlines()
        assert len(lines) - len(module.__doc__.splitlines()) <= self.most_lines

    def test_an_option_that_it_lacks_is_refused_with_the_nearest(self) -> None:
        known = type(self).recipe.options[-1]
        with pytest.raises(IllegalInput, match=f"'{known}'"):
            self.compose(**{f"{known}s": 1})

    def test_a_seed_reaches_its_stages(self) -> None:
        if "seed" not in type(self).recipe.options:
            pytest.skip("it takes no seed")
        pairs = zip(*(self.compose(seed=seed).stages for seed in (1, 2)), strict=True)
        drawing = [(stage.NAME, stage.seed, other.seed) for stage, other in pairs if hasattr(stage, "seed")]
        assert drawing, "no stage draws from the seed"
        assert not [name for name, one, other in drawing if one == other], "stages that ignore the seed"

    def test_limits_reach_its_search(self) -> None:
        if "limits" not in type(self).recipe.options:
            pytest.skip("it takes no limits")
        stages = self.compose(limits=("params<=9M",)).to_json()["stages"].values()
        assert any("params<=9M" in stage.get("limits", ()) for stage in stages)

    def test_stages_read_from_those_before_them(self) -> None:
        made = self.compose()
        assert all(isinstance(stage, Stage) for stage in made)
        assert len(made.named) == len(made.stages)

    def test_it_can_be_run_and_settling_it_again_changes_nothing(self, tmp_path: Path) -> None:
        from formwright.pipeline.runner import prepare  # noqa: PLC0415

        if not self.settled:
            pytest.skip("its stages need a model or data of the user's own")
        run = PipelineRun(self.compose(), tmp_path / "run")
        prepare(run)
        again = PipelineRun(run.pipeline, tmp_path / "run")
        prepare(again)
        assert again.pipeline == run.pipeline
        assert list(tmp_path.iterdir()) == [], "something was written before the run began"
