"""The tokenisers of pretrained models, read from their files."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from formwright.core.codec import canonical, loads
from formwright.core.errors import IllegalInput
from formwright.tasks.text_files import read_text
from formwright.tasks.tokeniser import Special, Tokeniser

_JSON, _WORDS = "tokenizer.json", "vocab.txt"
_CONFIGS = ("tokenizer_config.json", "special_tokens_map.json")
# where the files do not say which token has a role, it is the first of these that exists
_ROLES = {
    "begin": (("cls_token", "bos_token"), ("[CLS]", "<s>", "<|endoftext|>")),
    "separator": (("sep_token", "eos_token"), ("[SEP]", "</s>", "<|endoftext|>")),
    "pad": (("pad_token",), ("[PAD]", "<pad>")),
    "unknown": (("unk_token",), ("[UNK]", "<unk>")),
    "mask": (("mask_token",), ("[MASK]", "<mask>")),
}


@dataclass(frozen=True)
class PretrainedTokeniser(Tokeniser):
    """Cut text as a pretrained model expects it; `content` describes the tokeniser in the library's own JSON."""

    content: str = field(repr=False)
    special: Special
    separators: int = 1
    types: int = 2

    @cached_property
    def size(self) -> int:
        """Count the ids, those that no token has included."""
        return 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values())

    @cached_property
    def digest(self) -> str:
        rest = canonical([asdict(self.special), self.separators, self.types])
        return hashlib.sha256(f"{self.content}{rest}".encode()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.content)


def read_tokeniser(path: Path | str) -> Tokeniser:
    """Read a pretrained model's tokeniser from its folder, from a `tokenizer.json` or from a BERT's `vocab.txt`."""
    file = _find(Path(path))
    settings = _settings(file.parent)
    content = read_text(file)
    if file.suffix == ".txt":
        tokenizer = _from_words(file, content, settings)
    else:
        try:
            tokenizer = Tokenizer.from_str(content)
        except Exception as error:  # the library raises nothing more precise
            raise IllegalInput(f"{file} does not describe a tokeniser: {error}") from None
    tokenizer.no_truncation()  # files remember how their author cut and padded; we do that ourselves
    tokenizer.no_padding()
    special = _special(file, tokenizer, settings)
    separators, types = _pair_layout(tokenizer)
    _frame_alike(tokenizer, special, separators)
    return PretrainedTokeniser(tokenizer.to_str(), special, separators, types)


def with_tokens(tokeniser: Tokeniser, names: Sequence[str]) -> Tokeniser:
    """Return a tokeniser that reads some words as tokens of their own; itself if it does so already.

    New tokens have the ids behind the others.
    """
    tokenizer = tokeniser.tokenizer
    if all(tokenizer.token_to_id(name) is not None for name in names):
        return tokeniser
    more = Tokenizer.from_str(tokenizer.to_str())
    more.add_special_tokens(list(names))
    return PretrainedTokeniser(more.to_str(), tokeniser.special, tokeniser.separators, tokeniser.types)


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    found = [path / name for name in (_JSON, _WORDS) if (path / name).is_file()]
    if not found:
        reason = f"holds neither {_JSON} nor {_WORDS}" if path.is_dir() else f"is not a folder with {_JSON} or {_WORDS}"
        raise IllegalInput(f"{path} {reason}, so there is no tokeniser to read")
    return found[0]


def _settings(folder: Path) -> dict[str, Any]:
    """Merge the small files that tell the roles of tokens; the first that names one decides."""
    merged: dict[str, Any] = {}
    for path in (folder / name for name in _CONFIGS):
        if path.is_file():
            try:
                data = loads(read_text(path))
            except ValueError as error:
                raise IllegalInput(f"{path} is not JSON that can be read: {error}") from None
            if not isinstance(data, dict):
                raise IllegalInput(f"{path} must hold a JSON object")
            merged = data | merged
    return merged


def _from_words(file: Path, content: str, settings: Mapping[str, Any]) -> Tokenizer:
    words = content.replace("\r\n", "\n").removesuffix("\n").split("\n")
    vocabulary = {word: index for index, word in enumerate(words)}
    special = [word for _, names in _ROLES.values() for word in names[:1]]
    absent = [word for word in special if word != "[MASK]" and word not in vocabulary]
    if absent:
        raise IllegalInput(f"{file} must list one token a line, among them {absent[0]}, which it lacks")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True) is not False,
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True) is not False,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([word for word in special if word in vocabulary])
    return tokenizer


def _special(file: Path, tokenizer: Tokenizer, settings: Mapping[str, Any]) -> Special:
    found: dict[str, int | None] = {}
    for role, (keys, names) in _ROLES.items():
        said = [settings.get(key) for key in keys]
        # some files describe a token instead of naming it
        named = [token.get("content") if isinstance(token, dict) else token for token in said]
        ids = (tokenizer.token_to_id(name) for name in (*named, *names) if isinstance(name, str))
        found[role] = next((index for index in ids if index is not None), None)
    begin, separator = found.pop("begin"), found.pop("separator")
    if begin is None or separator is None:
        absent = "begin" if begin is None else "separator"
        raise IllegalInput(f"{file} has no token for the role '{absent}', such as {' or '.join(_ROLES[absent][1])}")
    return Special(begin, separator, **found)


def _frame_alike(tokenizer: Tokenizer, special: Special, separators: int) -> None:
    """Let a tokeniser that adds no special tokens add those that rows are given, so that it reads as the model does."""
    if tokenizer.encode("a").ids[:1] == [special.begin]:
        return
    begin, end = (tokenizer.id_to_token(number) for number in (special.begin, special.separator))
    frame = processors.TemplateProcessing(
        single=[begin, "$A", end],
        pair=[begin, "$A", *[end] * separators, "$B:1", f"{end}:1"],
        special_tokens=[(begin, special.begin), (end, special.separator)],
    )
    own = tokenizer.post_processor
    tokenizer.post_processor = frame if own is None else processors.Sequence([own, frame])


def _pair_layout(tokenizer: Tokenizer) -> tuple[int, int]:
    """Ask the tokeniser itself how many tokens it puts between two sentences, and how many types it gives them."""
    pair = tokenizer.encode("a", "a")
    members = pair.sequence_ids
    if None not in members or 1 not in members:
        return 1, 2  # it adds no special tokens, so a plain pair is made
    between = members[members.index(0) : members.index(1)].count(None)
    return max(between, 1), 1 + max(pair.type_ids)
