"""NAS-BERT (Xu et al., 2021): encoders of any size out of blocks that a teacher trained apart, without a task.

"NAS-BERT: Task-Agnostic and Adaptive-Size BERT Compression with Neural Architecture Search". No code was released; the
numbers of bins and rounds are known second-hand. Differences from the paper, with reasons:

- A teacher narrower than 512 gets widths scaled to its own, and as many blocks, up to four, as divide its layers, with
  two layers of a chain for each of its own: MiniLM has three blocks of four layers, 96 to 384 wide.
- Identities stand at the end of a block and are left out of the delivered model, so that equal blocks are one
  candidate; every block has at least one operation. MiniLM's blocks have 3,900 candidates each.
- A block begins with at most 4,000 candidates, drawn evenly over widths and lengths: the published 233,280 could not be
  judged here.
- Hidden states of two widths meet through projections that are learned from the text before the blocks are trained: the
  principal axes of the teacher's vectors at all boundaries together, shared by all blocks. So blocks of one width fit
  together without any map, and of two widths through one, and students can be compared with the teacher without further
  training.
- Narrower token tables are fitted to the teacher's in closed form, and their loss counts like a block's.
- Bins are cells of size and latency, ten along each. Chains of one operation are never dropped, so that a size which
  could be met in the beginning still can.
- A step trains four random chains, not one, with the same answers of the teacher, and there are 200 steps between two
  rounds: with five widths and five operations a layer of MiniLM's blocks is updated about 160 times in all.
- The super-network is trained for minutes on WikiText-2 or on Python's own prose, not for days on books and articles.
- The students keep the weights of their blocks and are trained further as a whole; the paper trains them from scratch.
"""

from collections.abc import Sequence

from formwright.pipeline.blocks_choose import ChooseChains
from formwright.pipeline.blocks_source import LoadTeacher, MeasureOperations
from formwright.pipeline.blocks_students import TeachStudents
from formwright.pipeline.blocks_train import FitBases, TrainBlocks
from formwright.pipeline.pipeline import Pipeline
from formwright.recipes.recipe import recipe


@recipe(
    "nas-bert",
    "encoders of several sizes for any task, trained block by block (NAS-BERT, Xu et al. 2021)",
    paper="Xu et al. 2021, NAS-BERT",
    command="compress",
    needs="a pretrained encoder (MiniLM of the extra `demo`) and any text",
    meanings={
        "text": "text to learn from: a file, or wikitext (default: the documentation of Python)",
        "sizes": "parameters or milliseconds of the students, such as 5M, 8ms or 10M@8ms",
        "data": "folder of the files of wikitext",
        "rows": "maximum number of pieces of text to learn from",
        "length": "maximum number of tokens in a piece of text",
        "batch": "pieces of text in a batch",
        "device": "where models run: auto, cpu, cuda or mps",
    },
    takes="42 minutes for three sizes of MiniLM with `--workers 2` on two busy cores; --hours scales it",
)
def nas_bert(  # noqa: PLR0913 - the options of its first stage
    model: str = "",
    text: str = "",
    *,
    sizes: str | Sequence[str],
    data: str | None = None,
    rows: int | None = None,
    length: int = 64,
    batch: int = 16,
    device: str = "auto",
    seed: int = 0,
) -> Pipeline:
    """Compress an encoder to several sizes, such as `5M`, `8ms` or `10M@8ms`."""
    wanted = sizes.split(",") if isinstance(sizes, str) else sizes
    source = LoadTeacher(model, text, data, length, rows, batch, device, seed)
    latency = MeasureOperations(source)
    bases = FitBases(source)
    blocks = TrainBlocks(source, latency, bases)
    choices = ChooseChains(source, latency, bases, blocks, tuple(size.strip() for size in wanted if size.strip()))
    return Pipeline(source, latency, bases, blocks, choices, TeachStudents(source, choices), recipe="nas-bert")
