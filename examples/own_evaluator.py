"""Search a published space with an evaluation of your own: any function of a design, in several processes.

Run it again and it resumes; kill it, and it goes on where it was. No torch is imported unless the function does it.
"""

import sys

import formwright as fw


def evaluate(card, budget):
    """Score a design: here a formula, in earnest a training or a measurement of yours."""
    layers = card.encoder.layers
    width = sum(layer.feed_forward[0] for layer in layers) / len(layers)
    return {"accuracy": 1 - 1 / (len(layers) * width), "depth": len(layers)}


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/own-evaluator"
    study = fw.Study("flexibert-nano", evaluate, ["accuracy:max", "params:min"], out, limits=["depth<=4"])
    result = study.run(trials=20, workers=2)
    for trial in result.front():
        print(trial.number, trial.observation.metrics)
    print("the page:", result.page)
