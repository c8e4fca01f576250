"""Context-aware local differential privacy for Kafka streams.

Devices privatize one value each (`ldpstream.mechanisms`), Faust agents keep exact windowed
statistics of the reports (`ldpstream.agents`), and estimators turn these into estimates with
confidence bounds (`ldpstream.estimators`)::

    import ldpstream as ldp

    modes = ldp.load_collection("ldpstream.toml", "modes")
    reports = ldp.privatize(modes, ["bus", "train", "bus"])
    ldp.estimate(reports).to_frame()

Importing this package imports nothing else: each name is loaded on first use, so that a device that
only privatizes loads numpy and nothing more.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpstream.agents.cli.plans.model import PlanDocument
    from ldpstream.agents.cli.python.display import plot, to_frame
    from ldpstream.agents.cli.python.plans import certify, plan
    from ldpstream.agents.cli.python.queries import change, query, windows
    from ldpstream.agents.cli.python.reports import (
        ReportSet,
        define_collection,
        estimate,
        load_collection,
        privatize,
        read_reports,
    )
    from ldpstream.agents.config.query.options import EstimateRequest
    from ldpstream.agents.config.query.queries import BoxRequest, LinearRequest
    from ldpstream.agents.document.model import EstimateDocument
    from ldpstream.agents.document.sinks import store_documents
    from ldpstream.agents.engine.testing import Driver
    from ldpstream.mechanisms.channels.certificate import Certificate

__version__ = "0.1.0"
__all__ = [
    "BoxRequest",
    "Certificate",
    "Driver",
    "EstimateDocument",
    "EstimateRequest",
    "LinearRequest",
    "PlanDocument",
    "ReportSet",
    "__version__",
    "certify",
    "change",
    "define_collection",
    "estimate",
    "load_collection",
    "plan",
    "plot",
    "privatize",
    "query",
    "read_reports",
    "store_documents",
    "to_frame",
    "windows",
]

_HOMES = {
    "ldpstream.agents.document.model": "EstimateDocument",
    "ldpstream.agents.document.sinks": "store_documents",
    "ldpstream.agents.cli.plans.model": "PlanDocument",
    "ldpstream.agents.cli.python.queries": "change query windows",
    "ldpstream.agents.cli.python.plans": "certify plan",
    "ldpstream.agents.cli.python.reports": (
        "ReportSet define_collection estimate load_collection privatize read_reports"
    ),
    "ldpstream.agents.cli.python.display": "plot to_frame",
    "ldpstream.agents.config.query.options": "EstimateRequest",
    "ldpstream.agents.config.query.queries": "BoxRequest LinearRequest",
    "ldpstream.agents.engine.testing": "Driver",
    "ldpstream.mechanisms.channels.certificate": "Certificate",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # Submodules that are not imported yet are not public names.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from ldpstream.mechanisms.base.lazy import handed_on

        try:
            return handed_on(__name__, _HOMES)(name)
        except ModuleNotFoundError as error:
            if error.name != "ldpstream.agents":
                raise
            said = f"{__name__}.{name} needs more than ldpstream-device: pip install ldpstream"
            raise ImportError(said, name=error.name) from error

    def __dir__() -> list[str]:
        # For completion in shells.
        return sorted(__all__)
