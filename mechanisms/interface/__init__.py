"""The interface that all mechanisms share: reports, statistics, decoders, settings."""
