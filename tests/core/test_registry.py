import sys
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput, MissingExtra, UnknownName
from formwright.core.registry import Registry

GROUP = "formwright.spaces"
TABLE = {"tau": "math:tau", "join": "os.path:join", "lazy": "formwright_no_such_module:thing"}


def registry() -> Registry[object]:
    return Registry("space", TABLE, GROUP)


def install(folder: Path, package: str, entries: dict[str, str], source: str = "") -> None:
    """Lay out a package as pip leaves it: a module, and a dist-info folder with its entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"[{GROUP}]", *(f"{name} = {target}" for name, target in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_names_are_sorted_and_import_nothing() -> None:
    # 'lazy' points to a module that does not exist: listing would fail if it imported
    assert {"join", "lazy", "tau"} <= set(registry().names())
    assert registry().names() == sorted(registry().names())


def test_get_imports_the_target_and_hides_no_mistake_in_our_own_table() -> None:
    assert registry().get("tau") == pytest.approx(6.283185307)
    assert registry().get("join")("a", "b") == str(Path("a", "b"))  # type: ignore[operator]
    with pytest.raises(UnknownName, match=r"'tauu'.*'tau'"):
        registry().get("tauu")
    with pytest.raises(ModuleNotFoundError, match="formwright_no_such_module"):
        registry().get("lazy")


def test_an_installed_package_joins_by_an_entry_point(site: Path) -> None:
    install(site, "acme-spaces", {"acme": "acme_spaces:SPACE"}, "SPACE = 'the acme space'\n")
    assert "acme" in registry().names()
    assert "acme_spaces" not in sys.modules
    assert registry().get("acme") == "the acme space"
    assert "acme" not in Registry("card", {}, "formwright.cards").names()


def test_a_name_with_two_owners_is_refused_with_both(site: Path) -> None:
    install(site, "acme-spaces", {"tau": "acme_spaces:SPACE"})
    with pytest.raises(IllegalInput, match="math:tau of formwright and acme_spaces:SPACE of acme-spaces"):
        registry().names()
    install(site, "other-spaces", {"shared": "other_spaces:SPACE"})
    install(site, "third-spaces", {"shared": "third_spaces:SPACE"})
    with pytest.raises(IllegalInput, match="other-spaces") as caught:
        Registry("space", {}, GROUP).get("shared")
    assert "third-spaces" in str(caught.value)


def test_a_missing_extra_of_a_package_stays_what_it_is(site: Path) -> None:
    source = "from formwright.core.extras import need\nneed('formwright_absent', 'hf')\n"
    install(site, "acme-spaces", {"acme": "acme_spaces:SPACE"}, source)
    with pytest.raises(MissingExtra):
        registry().get("acme")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "AttributeError"),
        ("(", "SyntaxError"),
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("SPACE = 'text'", "it is of type str and not int"),
    ],
)
def test_a_package_that_fails_in_any_way_is_blamed(site: Path, source: str, reason: str) -> None:
    install(site, "acme-spaces", {"acme": "acme_spaces:SPACE"}, source)
    with pytest.raises(IllegalInput, match=f"package acme-spaces cannot be loaded from acme_spaces:SPACE: {reason}"):
        Registry("space", TABLE, GROUP, int).get("acme")
