"""The client: the only door for callers, whether they own the store or ask the service."""

from svcq.client.client import (
    Client,
    JobId,
    Queueable,
    configure,
    default_client,
    set_default_client,
)

__all__ = ["Client", "JobId", "Queueable", "configure", "default_client", "set_default_client"]
