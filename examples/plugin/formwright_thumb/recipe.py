"""A recipe: a function that returns a pipeline of parts."""

from formwright.pipeline.deliver import Deliver
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import recipe
from formwright.search import searcher
from formwright.study.stop import Stop
from formwright_thumb.evaluator import RuleOfThumb
from formwright_thumb.stage import Tally


@recipe("thumb", "search by a rule of thumb, and train only what is delivered", needs="a text task")
def thumb(task: TaskChoice, *, space="flexibert-nano", trials: int = 20, seed: int = 0) -> Pipeline:
    """Search without training, count what was tried, and deliver the best design."""
    search = Search(
        space, task, searcher=searcher("half-random"), evaluator=RuleOfThumb(), stop=Stop(trials=trials), seed=seed
    )
    return Pipeline(search, Tally(search), Deliver(search))
