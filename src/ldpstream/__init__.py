"""Context-aware local differential privacy for Kafka streams.

Devices privatize one value each (`ldpstream.mechanisms`), Faust agents keep exact windowed
statistics of the reports (`ldpstream.agents`), and estimates with confidence bounds come out
(`ldpstream.estimators`). Importing this package imports nothing else, so that a device that only
privatizes pays for numpy alone.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
