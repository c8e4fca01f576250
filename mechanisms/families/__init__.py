"""The mechanisms, one folder for each family, with channel, randomiser, decoder and proof."""
