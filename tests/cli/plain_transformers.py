"""Score delivered folders as a stranger would: with transformers or onnxruntime alone, and default settings.

Run by a fresh process that cannot import formwright. Reads `jobs.json`, writes `results.json`: the scores of each job
on validation and, where the folder lists them, on test rows.
"""

import csv
import io
import json
import re
import string
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path


class Blocked:
    """Prove that nothing of this package is used."""

    def find_spec(self, name, *_):
        if name.split(".")[0] == "formwright":
            raise ImportError(f"{name} must not be imported here")


sys.meta_path.insert(0, Blocked())

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    pipeline,
)


def table_rows(path, columns, label, indices):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [([rows[index][column] for column in columns], rows[index][label]) for index in indices]


def text_accuracy(job, said, indices):
    trust = {} if job.get("stock") else {"trust_remote_code": True}
    tokenizer = AutoTokenizer.from_pretrained(job["folder"], **trust)
    model = AutoModelForSequenceClassification.from_pretrained(job["folder"], **trust)
    right = 0
    rows = table_rows(job["data"], said["columns"], said["task"]["label"], indices)
    for texts, label in rows:
        with torch.inference_mode():
            logits = model.eval()(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits
        right += model.config.id2label[int(logits.argmax())] == label
    return {"accuracy": right / len(rows)}


def onnx_accuracy(job, said, indices):
    import onnxruntime

    folder = Path(job["folder"])
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    names = json.loads((folder / "config.json").read_text())["id2label"]
    right = 0
    rows = table_rows(job["data"], said["columns"], said["task"]["label"], indices)
    for texts, label in rows:
        (logits,) = session.run(None, dict(tokenizer(*texts, truncation=True, return_tensors="np")))
        right += names[str(int(logits.argmax()))] == label
    return {"accuracy": right / len(rows)}


def page_accuracy(job, _said, _indices):
    """Run the program of the documentation, which prints the accuracy on validation."""
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(job["program"], "the page", "exec"), {})
    return {"accuracy": float(out.getvalue())}


def image_accuracy(job, _said, indices):
    from PIL import Image
    from sklearn.datasets import load_digits

    answer = pipeline("image-classification", job["folder"], trust_remote_code=True)
    images, labels = load_digits(return_X_y=True)
    pictures = [Image.fromarray(np.rint(images[index].reshape(8, 8) * 255 / 16).astype(np.uint8)) for index in indices]
    found = [answers[0]["label"] for answers in answer(pictures)]
    return {
        "accuracy": sum(one == str(labels[index]) for one, index in zip(found, indices, strict=True)) / len(indices)
    }


def span_scores(job, said, indices):
    tokenizer = AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True)
    model = AutoModelForQuestionAnswering.from_pretrained(job["folder"], trust_remote_code=True).eval()
    content = json.loads(Path(job["data"], said["rows"]["validation"]["source"]).read_text())
    entries = [
        (question, paragraph["context"])
        for article in content["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    exact, f1 = [], []
    for question, context in (entries[index] for index in indices):
        found = best_span(model, tokenizer, question["question"], context, said["overlap"])
        truths = [answer["text"] for answer in question["answers"]]
        exact.append(max(float(normal(found) == normal(truth)) for truth in truths))
        f1.append(max(overlap(normal(found).split(), normal(truth).split()) for truth in truths))
    return {"exact": float(np.mean(exact)), "span-f1": float(np.mean(f1))}


def best_span(model, tokenizer, question, context, stride):
    windows = tokenizer(
        question,
        context,
        truncation="only_second",
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    best, text = -np.inf, ""
    for number in range(len(windows["input_ids"])):
        named = {key: torch.tensor([windows[key][number]]) for key in tokenizer.model_input_names}
        with torch.inference_mode():
            output = model(**named)
        start, end = (scores[0].double().numpy() for scores in (output.start_logits, output.end_logits))
        inside = [place for place, part in enumerate(windows.sequence_ids(number)) if part == 1]
        for first in inside:
            for last in inside[inside.index(first) : inside.index(first) + 30]:
                if start[first] + end[last] > best:
                    best = start[first] + end[last]
                    places = windows["offset_mapping"][number]
                    text = context[places[first][0] : places[last][1]].strip()
    return text


def normal(text):
    """Lower the case and drop punctuation, articles and spaces, as the official script of SQuAD does."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def overlap(found, truth):
    common = sum((Counter(found) & Counter(truth)).values())
    return 2 * common / (len(found) + len(truth)) if common else 0.0


KINDS = {
    "page": page_accuracy,
    "text": text_accuracy,
    "onnx": onnx_accuracy,
    "image": image_accuracy,
    "span": span_scores,
}
results = {}
for job in json.loads(Path("jobs.json").read_text()):
    said = json.loads(Path(job["folder"], "evaluation.json").read_text())
    score = KINDS[job["kind"]]
    results[job["name"]] = {split: score(job, said, rows["indices"]) for split, rows in said["rows"].items()}
Path("results.json").write_text(json.dumps(results))
assert not [name for name in sys.modules if name.split(".")[0] == "formwright"]
