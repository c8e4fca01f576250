"""Device side: policies, channels, certificates, randomness and the wire format.

Three lines from a value to a produced report::

    spec = load_spec("ldpstream.toml", "checkins")
    message = spec.frame(["bus"])
    await producer.send(spec.topic, message)

Needs numpy and the standard library, nothing else.
"""

from typing import TYPE_CHECKING

from ldpstream.mechanisms.base.lazy import handed_on

if TYPE_CHECKING:
    from ldpstream.mechanisms.base.errors import FrameError, SpecError, ValueOutsideDomainError
    from ldpstream.mechanisms.channels.certificate import Certificate
    from ldpstream.mechanisms.channels.channel import Channel
    from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary
    from ldpstream.mechanisms.domains.blocks import Blocks
    from ldpstream.mechanisms.domains.parse import Domain, Grid, Interval, Labels, Size, Sizes
    from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
    from ldpstream.mechanisms.interface.decoder import Decoder
    from ldpstream.mechanisms.interface.mechanism import Mechanism
    from ldpstream.mechanisms.policies.composition import closure, compose
    from ldpstream.mechanisms.policies.graph import GraphPolicy
    from ldpstream.mechanisms.policies.implication import implies
    from ldpstream.mechanisms.policies.matrix import MatrixPolicy
    from ldpstream.mechanisms.policies.metric import MetricPolicy
    from ldpstream.mechanisms.policies.policy import (
        BinaryPolicy,
        BlockPolicy,
        HighLowPolicy,
        Policy,
    )
    from ldpstream.mechanisms.registry.registry import MECHANISMS
    from ldpstream.mechanisms.wire.frame import Frame, decode_frame, encode_frame, frame_fingerprint
    from ldpstream.mechanisms.wire.spec import CollectionSpec, load_spec
else:
    __getattr__ = handed_on(
        __name__,
        {
            "ldpstream.mechanisms.base.errors": "FrameError SpecError ValueOutsideDomainError",
            "ldpstream.mechanisms.channels.certificate": "Certificate",
            "ldpstream.mechanisms.channels.channel": "Channel",
            "ldpstream.mechanisms.channels.error_region": "ErrorRegion channel_boundary",
            "ldpstream.mechanisms.domains.blocks": "Blocks",
            "ldpstream.mechanisms.domains.parse": "Domain Grid Interval Labels Size Sizes",
            "ldpstream.mechanisms.exact.entropy": "Entropy SystemEntropy",
            "ldpstream.mechanisms.interface.decoder": "Decoder",
            "ldpstream.mechanisms.interface.mechanism": "Mechanism",
            "ldpstream.mechanisms.policies.composition": "closure compose",
            "ldpstream.mechanisms.policies.graph": "GraphPolicy",
            "ldpstream.mechanisms.policies.matrix": "MatrixPolicy",
            "ldpstream.mechanisms.policies.metric": "MetricPolicy",
            "ldpstream.mechanisms.policies.implication": "implies",
            "ldpstream.mechanisms.policies.policy": "BinaryPolicy BlockPolicy HighLowPolicy Policy",
            "ldpstream.mechanisms.registry.registry": "MECHANISMS",
            "ldpstream.mechanisms.wire.frame": "Frame decode_frame encode_frame frame_fingerprint",
            "ldpstream.mechanisms.wire.spec": "CollectionSpec load_spec",
        },
    )

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
