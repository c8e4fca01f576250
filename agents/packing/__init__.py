"""Pack single reports into larger messages, partition for partition, with their offsets."""
