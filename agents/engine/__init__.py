"""One worker: its collections, from messages read to published estimates and metrics.

Whatever loads or stores a state may raise a `SourceChangedError`, and a `KafkaError` as in
`ldpstream.agents.broker`.
"""
