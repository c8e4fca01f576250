"""A typed client of a worker's HTTP API, with the worker's own models.

```python
from ldpstream.agents.client import EstimateRequest, LinearRequest, connect

async with connect("http://127.0.0.1:6066", token=None) as worker:
    document = await worker.estimate("checkins", EstimateRequest(top=5))
    async for window in worker.windows("checkins"):
        print(window.window.start, window.n)
```
"""

from typing import TYPE_CHECKING

from ldpstream.mechanisms.base.lazy import handed_on

if TYPE_CHECKING:
    from ldpstream.agents.config.query.options import EstimateRequest
    from ldpstream.agents.config.query.queries import BoxRequest, LinearRequest
    from ldpstream.agents.document.client.errors import (
        AddressError,
        ApiError,
        NotAWorkerError,
        RefusedError,
        TokenRefusedError,
        UnavailableError,
        UnreachableError,
    )
    from ldpstream.agents.document.client.session import Client, Parameters, connect
else:
    __getattr__ = handed_on(
        __name__,
        {
            "ldpstream.agents.document.client.errors": (
                "AddressError ApiError NotAWorkerError RefusedError TokenRefusedError "
                "UnavailableError UnreachableError"
            ),
            "ldpstream.agents.document.client.session": "Client Parameters connect",
            "ldpstream.agents.config.query.options": "EstimateRequest",
            "ldpstream.agents.config.query.queries": "BoxRequest LinearRequest",
        },
    )

__all__ = [
    "AddressError",
    "ApiError",
    "BoxRequest",
    "Client",
    "EstimateRequest",
    "LinearRequest",
    "NotAWorkerError",
    "Parameters",
    "RefusedError",
    "TokenRefusedError",
    "UnavailableError",
    "UnreachableError",
    "connect",
]
