"""Where the stages of a block-wise compression keep what they made. What is there is whole, and is never redone."""

from dataclasses import dataclass
from pathlib import Path

from formwright.compress.folders import Places
from formwright.study.delivered import MODELS


@dataclass(frozen=True)
class Folders(Places):
    """Name the places in the folder of a block-wise compression."""

    @property
    def bases(self) -> Path:
        """Name the file with the projections between the teacher and its students."""
        return self.out / "bases.safetensors"

    @property
    def embeddings(self) -> Path:
        """Name the file with the narrower embeddings."""
        return self.out / "embeddings.safetensors"

    @property
    def choices(self) -> Path:
        """Name the file that says what was chosen for each size."""
        return self.out / "choices.json"

    def round(self, block: int, number: int) -> Path:
        """Name the file of a round of shrinking, counted from 1: every chain that was judged, and who stayed."""
        return self.out / "blocks" / str(block) / f"round-{number}.json"

    def table(self, block: int) -> Path:
        """Name the file with the loss of every chain of a block that was left."""
        return self.out / "blocks" / str(block) / "table.json"

    def weights(self, block: int) -> Path:
        """Name the file with the weights of the chains that were left; it is written before the table."""
        return self.out / "blocks" / str(block) / "weights.safetensors"

    def student(self, name: str, steps: int) -> Path:
        """Name the folder in which a student that is taught for so many steps saves how far it is."""
        return self.checkpoints(f"student-{name}@{steps}")

    def model(self, name: str) -> Path:
        """Name the folder of a delivered model."""
        return self.out / MODELS / name

    @property
    def delivered(self) -> list[Path]:
        """List the files that say what each delivered model is and costs."""
        return sorted((self.out / MODELS).glob("*.json"))

    def facts(self, name: str) -> Path:
        """Name the file that says what a delivered model is and costs."""
        return self.out / MODELS / f"{name}.json"
