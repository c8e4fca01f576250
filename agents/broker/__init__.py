"""Kafka clients, topics and permissions, and explanations of the broker's errors.

Whatever asks a broker may raise a `KafkaError`, where it does not answer or refuses; what was sent
may have arrived all the same. Whatever makes a client may raise a `ClientOptionError`, what
connects one a `BrokerUnavailableError`, and what declares or checks topics a `TopicError`.
"""
