"""Name weights by their content."""

import hashlib
import json
from collections.abc import Mapping

import torch
from torch import Tensor


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """Give the SHA-256 of tensors by their names, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        # as bytes, because numpy does not know every type of torch's
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
