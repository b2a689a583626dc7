"""The model card says what is known, and nothing in it breaks the page."""

from tests.nn.hf.helpers import DESIGNS

from formwright.nn.hf.readme import Provenance, readme

CARD = DESIGNS["bert"][0]


def test_facts_stand_in_tables_below_a_header() -> None:
    provenance = Provenance({"accuracy": 0.91234567}, {"parameters": 4_385_920}, {"parent": "bert-base"})
    text = readme(CARD, "sequence-classification", "AutoModelForSequenceClassification", provenance)
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert "pipeline_tag: text-classification" in head.splitlines()
    assert "- formwright" in head.splitlines()
    for line in ("| accuracy | 0.9123 |", "| parameters | 4,385,920 |", "| parent | bert-base |"):
        assert line in body.splitlines()
    assert CARD.digest in body
    assert "trust_remote_code=True" in body


def test_unknown_facts_have_no_heading_and_stock_needs_no_code() -> None:
    text = readme(CARD, None, "AutoModel", Provenance({}, {"parameters": 1}, {}))
    assert "## Costs" in text
    assert "## Scores" not in text
    assert "pipeline_tag" not in text
    text = readme(CARD, "masked-lm", "BertForMaskedLM", Provenance({}, {}, {}), stock=True)
    assert "trust_remote_code" not in text
    assert "import formwright" not in text


def test_hostile_names_stay_in_their_cell_and_images_have_a_pipeline() -> None:
    text = readme(CARD, None, "AutoModel", Provenance({"a|b\n---\n<script>": "x\r|y"}, {}, {}))
    (row,) = [line for line in text.splitlines() if "script" in line]
    assert row == "| a\\|b --- &lt;script> | x \\|y |"
    text = readme(
        DESIGNS["viewer"][0], "sequence-classification", "AutoModelForImageClassification", Provenance({}, {}, {})
    )
    assert "pipeline_tag: image-classification" in text
