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
from svcq.later import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from svcq.config.change import add_project, remove_project, set_value, unset_value
    from svcq.config.follow import Followed
else:
    __getattr__ = names_from(
        __name__,
        {
            "change": ("add_project", "remove_project", "set_value", "unset_value"),
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
    "Workers",
    "add_project",
    "config_file",
    "home",
    "load",
    "remove_project",
    "set_value",
    "unset_value",
]
