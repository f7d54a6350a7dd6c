"""The configuration: one TOML file in the home, read once, validated once, frozen."""

from svcq.config.load import config_file, load
from svcq.config.load import default_home as home
from svcq.config.projects import Project
from svcq.config.settings import (
    SETTINGS,
    Config,
    JobDefaults,
    QueueDefaults,
    Retention,
    Setting,
    Workers,
)
from svcq.config.targets import Target
from svcq.later import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from svcq.config.change import (
        add_project,
        add_target,
        remove_project,
        remove_target,
        set_value,
        unset_value,
    )
    from svcq.config.follow import Followed
else:
    __getattr__ = names_from(
        __name__,
        {
            "change": (
                "add_project",
                "add_target",
                "remove_project",
                "remove_target",
                "set_value",
                "unset_value",
            ),
            "follow": ("Followed",),
        },
        globals(),
    )

__all__ = [
    "SETTINGS",
    "Config",
    "Followed",
    "JobDefaults",
    "Project",
    "QueueDefaults",
    "Retention",
    "Setting",
    "Target",
    "Workers",
    "add_project",
    "add_target",
    "config_file",
    "home",
    "load",
    "remove_project",
    "remove_target",
    "set_value",
    "unset_value",
]
