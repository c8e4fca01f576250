"""Apache Kafka with a listener of every kind: open, TLS, mutual TLS, logins, logins over TLS.

Clients without a name may do everything; named users may do what they were permitted.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient

from ldpstream.agents.broker import clients
from tests.brokers import Broker, KafkaServer, accepts, wait_until
from tests.certificates import KEY_PASSWORD, Certificates, make_certificates
from tests.ports import free_ports

KINDS = ("PLAINTEXT", "SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL")
USER, PASSWORD = "worker", "correct-horse-battery"
"""May do everything with every topic and group."""
STRANGER = "stranger"
"""Knows the same password, and may do nothing."""
_MODULES = "org.apache.kafka.common.security"
_SCRAM_LOGIN = f"{_MODULES}.scram.ScramLoginModule required;"
_PLAIN_LOGIN = " ".join(
    [
        f"{_MODULES}.plain.PlainLoginModule required",
        *(f'user_{user}="{PASSWORD}"' for user in (USER, STRANGER)),
    ]
)


@dataclass(frozen=True)
class Secured:
    """A running broker; `ports` are by listener."""

    ports: Mapping[str, int]
    files: Certificates
    password_file: Path

    def bootstrap(self, listener: str) -> str:
        """Return the address of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def broker(self, listener: str, *, user: str = USER, mechanism: str = "") -> Broker:
        """Return a listener with the settings that clients need for it.

        Those with a login offer `PLAIN`, and one kind of SCRAM, which is the default.
        """
        settings: dict[str, object] = {}
        if listener != "PLAINTEXT":
            settings["security_protocol"] = "SSL" if listener == "MUTUAL" else listener
        if listener.startswith("SASL"):
            settings["sasl_mechanism"] = mechanism or _scram_of(listener)
            settings["sasl_plain_username"] = user
            settings["sasl_plain_password"] = {"file": str(self.password_file)}
        if listener not in {"PLAINTEXT", "SASL_PLAINTEXT"}:
            settings["ssl_cafile"] = str(self.files.authority)
        if listener == "MUTUAL":
            settings["ssl_certfile"] = str(self.files.client)
            settings["ssl_keyfile"] = str(self.files.client_key)
            settings["ssl_password"] = KEY_PASSWORD
        return Broker("kafka", self.bootstrap(listener), settings)

    @asynccontextmanager
    async def administrator(self) -> AsyncIterator[AIOKafkaAdminClient]:
        """Yield an admin client that may do everything."""
        client = clients.admin(self.bootstrap("PLAINTEXT"), {})
        await client.start()
        try:
            yield client
        finally:
            await client.close()


def _scram_of(listener: str) -> str:
    return "SCRAM-SHA-512" if listener == "SASL_SSL" else "SCRAM-SHA-256"


@contextmanager
def secured_kafka(folder: Path) -> Iterator[Secured]:
    """Run a broker with all listeners; certificates and the password go to `folder`."""
    files = make_certificates(folder)
    password_file = folder / "password"
    password_file.write_text(f"{PASSWORD}\n")
    *numbers, controller = free_ports(len(KINDS) + 1)
    ports = dict(zip(KINDS, numbers, strict=True))
    settings = {
        "PORT": ports["PLAINTEXT"],
        "CONTROLLER_PORT": controller,
        **_listeners(ports, controller),
        **_tls(files),
        **_logins(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The name of a certificate is not one of SCRAM.
        "super.users": f"User:ANONYMOUS;User:CN={USER}",
    }
    users = [
        f"{_scram_of(listener)}=[name={user},password={PASSWORD}]"
        for listener in ("SASL_SSL", "SASL_PLAINTEXT")
        for user in (USER, STRANGER)
    ]
    with KafkaServer.prepared(settings=settings, users=users) as server:
        server.start()
        # The other listeners open after the one that says that the broker serves.
        wait_until(lambda: all(map(accepts, ports.values())), "all listeners")
        yield Secured(ports, files, password_file)


def _listeners(ports: Mapping[str, int], controller: int) -> dict[str, str]:
    served = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in ports.items())
    kinds = ",".join(f"{kind}:{'SSL' if kind == 'MUTUAL' else kind}" for kind in KINDS)
    return {
        "listeners": f"{served},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": served,
        "listener.security.protocol.map": f"{kinds},CONTROLLER:PLAINTEXT",
    }


def _tls(files: Certificates) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "listener.name.mutual.ssl.client.auth": "required",
    }


def _logins() -> dict[str, str]:
    settings = {}
    for listener in ("SASL_SSL", "SASL_PLAINTEXT"):
        prefix, scram = f"listener.name.{listener.lower()}", _scram_of(listener)
        settings[f"{prefix}.sasl.enabled.mechanisms"] = f"{scram},PLAIN"
        settings[f"{prefix}.{scram.lower()}.sasl.jaas.config"] = _SCRAM_LOGIN
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_LOGIN};"
    return settings
