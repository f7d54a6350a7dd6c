"""The configuration: one TOML file in the home, read once, validated once, frozen."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from svcq.config.change import add_project, remove_project, set_value, unset_value
else:
    __getattr__ = names_from(
        __name__,
        {"change": ("add_project", "remove_project", "set_value", "unset_value")},
        globals(),
    )

__all__ = [
    "SETTINGS",
    "Config",
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
