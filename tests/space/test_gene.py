import pytest

from formwright.space import Gene, Path, show_path


@pytest.mark.parametrize(
    ("path", "shown"),
    [((), ""), (("layers", 1, "mixer"), "layers[1].mixer"), ((0, 2), "[0][2]"), ((1, "heads"), "[1].heads")],
)
def test_paths_are_written_as_people_read_them(path: Path, shown: str) -> None:
    assert show_path(path) == shown
    assert Gene(path, 1, lambda value: (value,)).name == shown


def test_options_are_asked_for_with_the_value() -> None:
    assert Gene(("heads",), 4, lambda value: (value, 2 * value)).options == (4, 8)
