"""The state machine of a partition and its state: pure, without Kafka, Faust or a clock."""
