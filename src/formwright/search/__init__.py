"""What proposes the next design: searchers that see the trials so far and nothing else."""

from formwright.core.callable_package import call_package
from formwright.search.proposals import NoLegalDesign, SpaceExhausted
from formwright.search.searchers import SEARCHERS, make_searcher, option_names, searcher

__all__ = ["SEARCHERS", "NoLegalDesign", "SpaceExhausted", "make_searcher", "option_names", "searcher"]

call_package(__name__, "formwright.api:search")
