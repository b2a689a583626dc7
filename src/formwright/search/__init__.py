"""What proposes the next design: searchers that see the trials so far and nothing else."""

from formwright.search.errors import NoLegalDesign, SpaceExhausted
from formwright.search.make import SEARCHERS, make_searcher, option_names

__all__ = ["SEARCHERS", "NoLegalDesign", "SpaceExhausted", "make_searcher", "option_names"]
