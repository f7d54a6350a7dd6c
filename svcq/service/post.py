"""One message to some addresses of Apprise, as a program of its own: `python -m svcq.service.post`.

The addresses come by standard input, since others can see the arguments of a program. What hangs or
breaks in a library for a hundred services is ended with this process, and so is its memory.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> int:
    """Read {"urls", "title", "body", "failed"}; print which of the addresses did not work."""
    import logging

    import apprise

    logging.disable(logging.CRITICAL)  # what it says may name an address with its password
    said: dict[str, Any] = json.load(sys.stdin)
    kind = apprise.NotifyType.FAILURE if said["failed"] else apprise.NotifyType.SUCCESS
    failed = []
    for n, url in enumerate(said["urls"]):
        one = apprise.Apprise()
        known = one.add(url)
        if not known or not one.notify(body=said["body"], title=said["title"], notify_type=kind):
            failed.append([n, "not sent" if known else "no address that Apprise knows"])
    print(json.dumps(failed))  # noqa: T201  (to whoever started it)
    return 0


if __name__ == "__main__":
    sys.exit(main())
