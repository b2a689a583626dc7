"""Begin the last training of a design with the weights that the trials of a study share."""

from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.evaluate.pretrained import Pretraining
from formwright.nn.task_model import TaskModel
from formwright.supernet.branch_store import Store, taken
from formwright.supernet.branches import HEAD
from formwright.supernet.kernels import to_train, without_matrices
from formwright.train.fit import Training, fresh_model, with_weights
from formwright.train.prepare import Prepared


@dataclass(frozen=True)
class FromStore:
    """Take the weights of a card from a store, pretrain them on, and put the fresh head of a task on them.

    So begins AutoBERT-Zero* (Gao et al. 2022, Table 2: "initialized from the supernet"). The model is nobody's but its
    own from here on, so each kernel is trained as it is seen through its matrix, as that of a model with fresh weights
    is: the two differ in what they begin with, and in nothing else. `seed` is that of the words that are hidden.
    """

    store: Store
    pretraining: Pretraining
    seed: int

    def __call__(self, card: Card, prepared: Prepared, training: Training) -> TaskModel:
        """Give the model that the training begins with."""
        plain = without_matrices(taken(self.store, card))
        model = to_train(card, plain, HEAD, self.pretraining.training.settings)
        weights = self.pretraining.learnt(card, prepared, self.seed, model=model)
        return with_weights(fresh_model(card, prepared, training), weights)
