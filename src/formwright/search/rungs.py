"""Lengths of evaluations that go on from each other."""


def rungs_of(min_steps: int, max_steps: int, eta: int) -> tuple[int, ...]:
    """List the steps of each rung, shortest first: each `eta` times the one before, the last one `max_steps`."""
    steps = [min_steps]
    while steps[-1] * eta < max_steps:
        steps.append(steps[-1] * eta)
    return (*steps, max_steps) if steps[-1] < max_steps else tuple(steps)
