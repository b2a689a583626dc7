"""What a design is: the vocabulary of operations, cards, graphs and digests. Nothing here needs torch."""
