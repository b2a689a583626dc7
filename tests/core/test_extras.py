import json
import sys
from pathlib import Path

import pytest

from formwright.core.errors import MissingExtra
from formwright.core.extras import need


def test_an_installed_module_is_returned() -> None:
    assert need("json", "hf") is json


@pytest.mark.parametrize("module", ["formwright_absent", "formwright_absent.inner"])
def test_an_absent_module_names_its_extra(module: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        need(module, "hf")
    assert (caught.value.module, caught.value.extra) == (module, "hf")


def test_a_broken_module_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "formwright_broken.py").write_text("import formwright_absent_dependency\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="formwright_absent_dependency") as caught:
        need("formwright_broken", "hf")
    assert not isinstance(caught.value, MissingExtra)
    assert "formwright_broken" not in sys.modules
