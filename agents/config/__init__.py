"""The configuration: one TOML file for broker, worker, gateway and collections."""

from typing import TYPE_CHECKING

from ldpstream.mechanisms.base.lazy import handed_on

if TYPE_CHECKING:
    from ldpstream.agents.config.client_options import KafkaConfig
    from ldpstream.agents.config.collection import CollectionConfig, Topics
    from ldpstream.agents.config.errors import ConfigError
    from ldpstream.agents.config.gateway import GatewayConfig
    from ldpstream.agents.config.load import BOOTSTRAP_VARIABLE, Config, load_config, read_config
    from ldpstream.agents.config.privacy.over_time import SpreadConfig
    from ldpstream.agents.config.worker import Shard, WorkerConfig
    from ldpstream.agents.state.windows import WindowSpec
    from ldpstream.mechanisms.domains.queries import Range
else:
    __getattr__ = handed_on(
        __name__,
        {
            "ldpstream.agents.config.collection": "CollectionConfig Topics",
            "ldpstream.agents.config.errors": "ConfigError",
            "ldpstream.agents.config.gateway": "GatewayConfig",
            "ldpstream.agents.config.client_options": "KafkaConfig",
            "ldpstream.agents.config.load": "BOOTSTRAP_VARIABLE Config load_config read_config",
            "ldpstream.agents.config.privacy.over_time": "SpreadConfig",
            "ldpstream.agents.config.worker": "Shard WorkerConfig",
            "ldpstream.mechanisms.domains.queries": "Range",
            "ldpstream.agents.state.windows": "WindowSpec",
        },
    )

__all__ = [
    "BOOTSTRAP_VARIABLE",
    "CollectionConfig",
    "Config",
    "ConfigError",
    "GatewayConfig",
    "KafkaConfig",
    "Range",
    "Shard",
    "SpreadConfig",
    "Topics",
    "WindowSpec",
    "WorkerConfig",
    "load_config",
    "read_config",
]
