"""Other users of the machine, and the local sockets through which they are known."""

import sys

if sys.platform == "win32":
    from svcq.host.windows_peers import (
        KNOWS_PEERS,
        NOBODY,
        account_name,
        claim_port,
        connect_local,
        listen_local,
        listener_uid,
        member_of,
        own_uid,
        uid_named,
        uid_of,
    )
else:
    from svcq.host.linux_peers import (
        KNOWS_PEERS,
        NOBODY,
        account_name,
        claim_port,
        connect_local,
        listen_local,
        listener_uid,
        member_of,
        own_uid,
        uid_named,
        uid_of,
    )

__all__ = [
    "KNOWS_PEERS",
    "NOBODY",
    "account_name",
    "claim_port",
    "connect_local",
    "listen_local",
    "listener_uid",
    "member_of",
    "own_uid",
    "uid_named",
    "uid_of",
]
