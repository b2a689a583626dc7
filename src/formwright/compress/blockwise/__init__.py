"""From a pretrained encoder to chains of several sizes, without a task: blocks that are taught apart, and chosen."""
