"""Device side: policies, channels, certificates, randomness and the wire format.

Three lines from a value to a produced report::

    spec = load_spec("ldpstream.toml", "checkins")
    message = spec.frame(["bus"])
    await producer.send(spec.topic, message)

Needs numpy and the standard library, nothing else.
"""

from ldpstream.mechanisms.blocks import Blocks
from ldpstream.mechanisms.certificate import Certificate
from ldpstream.mechanisms.channel import Channel
from ldpstream.mechanisms.decoder import Decoder
from ldpstream.mechanisms.domain import Domain, Grid, Interval, Labels, Size, Sizes
from ldpstream.mechanisms.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.error_region import ErrorRegion, channel_boundary
from ldpstream.mechanisms.errors import FrameError, SpecError, ValueOutsideDomainError
from ldpstream.mechanisms.frame import Frame, decode_frame, encode_frame, frame_fingerprint
from ldpstream.mechanisms.graph_policy import GraphPolicy
from ldpstream.mechanisms.matrix_policy import MatrixPolicy
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.metric_policy import MetricPolicy
from ldpstream.mechanisms.policy import BinaryPolicy, BlockPolicy, HighLowPolicy, Policy
from ldpstream.mechanisms.policy_algebra import closure, compose
from ldpstream.mechanisms.policy_order import implies
from ldpstream.mechanisms.registry import MECHANISMS
from ldpstream.mechanisms.spec import CollectionSpec, load_spec

__all__ = [
    "MECHANISMS",
    "BinaryPolicy",
    "BlockPolicy",
    "Blocks",
    "Certificate",
    "Channel",
    "CollectionSpec",
    "Decoder",
    "Domain",
    "Entropy",
    "ErrorRegion",
    "Frame",
    "FrameError",
    "GraphPolicy",
    "Grid",
    "HighLowPolicy",
    "Interval",
    "Labels",
    "MatrixPolicy",
    "Mechanism",
    "MetricPolicy",
    "Policy",
    "Size",
    "Sizes",
    "SpecError",
    "SystemEntropy",
    "ValueOutsideDomainError",
    "channel_boundary",
    "closure",
    "compose",
    "decode_frame",
    "encode_frame",
    "frame_fingerprint",
    "implies",
    "load_spec",
]
