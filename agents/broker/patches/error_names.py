"""Know the broker's errors that aiokafka does not know, by the names that Kafka gives them.

aiokafka 0.14 knows the codes up to 72, and turns any other into `UnknownError`, without its code:
a broker that refuses a record without a key (87) and one that refuses to delete a topic (73) then
look the same. `name_errors` adds the missing ones to aiokafka's table, as kinds of `UnknownError`,
so that nothing is handled otherwise than before; only their text is another.

The table is one for all clients of a process. So commands install this at their start, and an app
to which the pipeline is attached when it starts; nothing else does.
"""

from typing import Final

from aiokafka.errors import BrokerResponseError, UnknownError, kafka_errors

_FIRST: Final = 73
_NAMES: Final = """
TOPIC_DELETION_DISABLED FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNSUPPORTED_COMPRESSION_TYPE
STALE_BROKER_EPOCH OFFSET_NOT_AVAILABLE MEMBER_ID_REQUIRED PREFERRED_LEADER_NOT_AVAILABLE
GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED
NO_REASSIGNMENT_IN_PROGRESS GROUP_SUBSCRIBED_TO_TOPIC INVALID_RECORD UNSTABLE_OFFSET_COMMIT
THROTTLING_QUOTA_EXCEEDED PRODUCER_FENCED RESOURCE_NOT_FOUND DUPLICATE_RESOURCE
UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED
PRINCIPAL_DESERIALIZATION_FAILURE SNAPSHOT_NOT_FOUND POSITION_OUT_OF_RANGE UNKNOWN_TOPIC_ID
DUPLICATE_BROKER_REGISTRATION BROKER_ID_NOT_REGISTERED INCONSISTENT_TOPIC_ID
INCONSISTENT_CLUSTER_ID TRANSACTIONAL_ID_NOT_FOUND FETCH_SESSION_TOPIC_ID_ERROR INELIGIBLE_REPLICA
NEW_LEADER_ELECTED OFFSET_MOVED_TO_TIERED_STORAGE FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID
UNSUPPORTED_ASSIGNOR STALE_MEMBER_EPOCH MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE
UNKNOWN_CONTROLLER_ID UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE INVALID_REGISTRATION
TRANSACTION_ABORTABLE INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND INVALID_REGULAR_EXPRESSION
REBOOTSTRAP_REQUIRED STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH
STREAMS_TOPOLOGY_FENCED SHARE_SESSION_LIMIT_REACHED
"""
ERROR_NAMES: Final = dict(enumerate(_NAMES.split(), start=_FIRST))
"""Kafka 4.2's names of the codes above those that aiokafka knows."""


def name_errors() -> None:
    """Add to aiokafka's table the errors that it does not know."""
    for code, name in ERROR_NAMES.items():
        if code not in kafka_errors:
            fields = {"errno": code, "message": name, "description": name}
            kind: type[BrokerResponseError] = type(name, (UnknownError,), fields)
            kafka_errors[code] = kind
