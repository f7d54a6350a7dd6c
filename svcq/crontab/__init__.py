"""crontab(5) as a file: its lines as entries, and entries as its lines.

Crons differ in what their manual leaves open. Here, a backslash in front of a percent sign is all
that is special about either; `CRON_TZ` names the zone and `RANDOM_DELAY` the longest random delay,
as in cronie; nothing in a value is expanded.
"""

from svcq.crontab.entry import Entry, Input, derived_names, shell_line, without_input
from svcq.crontab.read import Crontab, Remark, read_crontab
from svcq.crontab.write import Unsaid, write_crontab

__all__ = [
    "Crontab",
    "Entry",
    "Input",
    "Remark",
    "Unsaid",
    "derived_names",
    "read_crontab",
    "shell_line",
    "without_input",
    "write_crontab",
]
