"""The operations of a layer, one file each: fields, legality, tensors, products, graph block, words and colour."""
