"""Words that several of the generated tasks share; few of each kind, so that seconds of training can learn them."""

PEOPLE = ("cook", "nurse", "farmer", "pilot", "singer", "painter", "baker", "guard")
PLACES = ("garden", "kitchen", "market", "station", "theatre", "harbour")
TIMES = ("today", "yesterday", "tonight", "sometimes", "daily", "early")

POSITIVE = ("good", "lovely", "clever", "bright", "charming", "fresh", "moving", "honest")
NEGATIVE = ("bad", "ugly", "stupid", "dull", "boring", "stale", "clumsy", "cheap")

ASIDES = ("in the end", "as they say", "of course", "once again", "by the way", "as always")
