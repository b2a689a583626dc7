"""Facts of a block-wise compression that never took place."""

from formwright.pipeline.block_facts import BlockCandidate, BlockFacts, Model, Option

FIRST = (
    BlockCandidate(96, ("attention",), 0.5, 37_000, 0.4),
    BlockCandidate(96, ("attention", "feed-forward"), 0.3, 111_000, 0.9),
    BlockCandidate(384, ("separable-3", "feed-forward", "attention"), 0.1, 1_900_000, 4.0),
    BlockCandidate(384, ("feed-forward", "feed-forward", "attention"), 0.2, 1_900_100, 4.0),
)
SECOND = (
    BlockCandidate(192, ("separable-7",), 0.4, 75_000, 0.5),
    BlockCandidate(384, ("attention",), 0.25, 590_000, 1.5),
)
FACTS = BlockFacts(
    teacher="MiniLM <6>",
    params=22_700_000,
    text="wikitext",
    blocks=(FIRST, SECOND),
    options=(
        Option(2_000_000, 48, (0, 0), 1_990_000, 1.0, 1.2),
        Option(6_000_000, 96, (1, 1), 5_900_000, 3.0, 0.9),
        Option(15_000_000, 288, (2, 1), 14_000_000, 7.0, 0.5),
    ),
    models=(Model("5m", 4_900_000, 3.1, 2.9, 0.6, 0.3),),
)
