"""Packing single reports into frames, partition for partition, with the source's offsets."""
