"""The store: every verb of the queue over a database. Its names are imported when first used."""

from svcq.later import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from svcq.store.claim import Claimer
    from svcq.store.declared import Declared
    from svcq.store.enqueue import Added
    from svcq.store.facts import LONGEST_LINE, Facts, Limit, Parent, Running
    from svcq.store.finish import Report
    from svcq.store.opening import open_store, upgrade_store
    from svcq.store.queues import Queue
    from svcq.store.read import Filter
    from svcq.store.stats import Activity, QueueStats, Times
    from svcq.store.store import Store
    from svcq.store.workers import Orders, Worker, WorkerInfo
else:
    __getattr__ = names_from(
        __name__,
        {
            "claim": ("Claimer",),
            "declared": ("Declared",),
            "enqueue": ("Added",),
            "facts": ("LONGEST_LINE", "Facts", "Limit", "Parent", "Running"),
            "finish": ("Report",),
            "opening": ("open_store", "upgrade_store"),
            "queues": ("Queue",),
            "read": ("Filter",),
            "stats": ("Activity", "QueueStats", "Times"),
            "store": ("Store",),
            "workers": ("Orders", "Worker", "WorkerInfo"),
        },
        globals(),
    )

__all__ = [
    "LONGEST_LINE",
    "Activity",
    "Added",
    "Claimer",
    "Declared",
    "Facts",
    "Filter",
    "Limit",
    "Orders",
    "Parent",
    "Queue",
    "QueueStats",
    "Report",
    "Running",
    "Store",
    "Times",
    "Worker",
    "WorkerInfo",
    "open_store",
    "upgrade_store",
]
