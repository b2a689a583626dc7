"""What a list of methods says of each: where it was published, which command runs it, what it needs and takes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Say of a method, in a few words each, what it does, for whom, with what, and in what time here.

    `takes` is the time at the default budget on two cores, as far as it was measured.
    """

    about: str
    paper: str = ""
    job: str = ""
    needs: str = ""
    takes: str = ""
