"""A compression whose blocks are trained, for the tests of what comes after."""

import pytest
from tests.compress.blockwise.small import PLAN, job, prepared, pretended

from formwright.compress.blockwise.choices import Choice, Selection
from formwright.compress.blockwise.students import StudentTraining, delivered
from formwright.train.fit import Run
from formwright.train.loop import Paused, Saving


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    """Give a compression whose blocks were trained without a pause."""
    folder = tmp_path_factory.mktemp("whole")
    selection = prepared(job(folder).started(), folder / "out")
    for block in range(2):
        selection.training(block).run(Run(Saving(selection.folders.checkpoints(f"block-{block}"), 2)))
    return selection


@pytest.fixture(scope="session")
def chosen(whole: Selection) -> dict[str, Choice]:
    """Give what is chosen for each size."""
    return whole.choose(pretended)


@pytest.fixture(scope="session")
def models(whole: Selection, chosen: dict[str, Choice]) -> list[dict[str, object]]:
    """Give the delivered models, each of which was paused once."""

    def pause(step: int, _: float) -> None:
        if step == 1:
            raise Paused

    for name, choice in chosen.items():
        saving, training = (
            Saving(whole.folders.student(name, PLAN.student_steps), 1),
            StudentTraining(whole, name, choice),
        )
        with pytest.raises(Paused):
            training.run(Run(saving, after_step=pause))
        assert not whole.folders.facts(name).exists()
        training.run(Run(saving))
    return delivered(whole, pretended)
