"""NAS-BERT (Xu et al., 2021): encoders of any size out of blocks that a teacher trained apart, without a task.

"NAS-BERT: Task-Agnostic and Adaptive-Size BERT Compression with Neural Architecture Search". No code was released; what
is known of bins and rounds is known second-hand. What differs from the paper, and why:

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
- The students keep the weights of their blocks and are taught on as wholes; the paper trains them anew.
"""

from formwright.compress.blockwise.method import Method
from formwright.recipes.summary import Summary
from formwright.space.zoo.chains import scaled

SUMMARY = Summary(
    about="encoders of several sizes for any task, taught block by block (NAS-BERT, Xu et al. 2021)",
    paper="Xu et al. 2021, NAS-BERT",
    job="compress",
    needs="a pretrained encoder (MiniLM of the extra `demo`) and any text",
    takes="42 minutes for three sizes of MiniLM with `--workers 2` on two busy cores; --hours scales it",
)

NAS_BERT = Method(
    menu=scaled,
    candidates=4000,
    rounds=4,
    bins=10,
    least=10,
    paths=4,
    round_steps=200,
    student_steps=1000,
    batch=16,
    learning_rate=3e-3,
    student_rate=5e-4,
    checked=5,
)
