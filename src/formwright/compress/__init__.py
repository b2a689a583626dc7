"""From a pretrained model to smaller ones: stages that are kept, and what they are planned to take."""
