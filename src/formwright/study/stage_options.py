"""What the configuration in a study's log says: the JSON of a pipeline, and which of its stages the study is."""

from collections.abc import Mapping
from typing import Any


def searched(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the options of the study's own stage, and those of the stage that delivers its designs, as one object."""
    stages = config.get("stages")
    if not isinstance(stages, Mapping):
        return config
    name = config.get("stage", "search")
    own = stages.get(name)
    wanted = [one for one in stages.values() if isinstance(one, Mapping) and one.get("stage") == "deliver"]
    delivered = next((one for one in wanted if one.get("search") == name), {})
    names = ("keep", "targets", "steps", "weights", "baseline")
    found = {key: delivered[key] for key in names if key in delivered}
    return {**(own if isinstance(own, Mapping) else {}), **found, "recipe": config.get("recipe", "")}
