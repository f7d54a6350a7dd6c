"""`svcq project`: whose Python functions workers run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from svcq.cli.parser import Namespace, Parser, add_json
from svcq.cli.text import Column, print_json, print_table

if TYPE_CHECKING:
    from svcq.config import Project


def _project_parser(parser: Parser) -> None:
    add = parser.command("add", "let workers run the tasks of a folder", _add)
    add.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="where it is (.)")
    add.add_argument("--name", metavar="NAME", help="what to call it (the folder's name)")
    add.add_argument(
        "--import", action="append", required=True, metavar="MODULE", dest="imports",
        help="a module that defines tasks",
    )  # fmt: skip
    add.add_argument(
        "--python",
        metavar="FILE",
        help="its interpreter (the virtual environment's that is active)",
    )
    add.add_argument(
        "--no-check", action="store_true", help="do not try whether its modules can be imported"
    )
    add_json(parser.command("list", "list the projects", _list))
    remove = parser.command("remove", "forget a project", _remove)
    remove.add_argument("name", metavar="NAME", help="what it is called")


def _add(options: Namespace) -> None:
    from svcq.config import Project, add_project, home
    from svcq.errors import InvalidInput
    from svcq.policy import check_name

    folder = Path(options.folder).absolute()
    if not folder.is_dir():
        raise InvalidInput(f"The folder {options.folder!r} does not exist: name one that does.")
    name = check_name(options.name or folder.name, "name of the project")
    python = _interpreter(options.python, folder)
    _check_interpreter(python)
    project = Project(name, python, (str(folder),), tuple(options.imports))
    if not options.no_check:
        _check_imports(project)
    add_project(home(), project)
    print(f"The service and svcq up now run the tasks of {name}, in {python}.")


def _interpreter(given: str | None, folder: Path) -> str:
    """The one given, that of the active virtual environment or of the folder's own, or ours."""
    import os
    import sys

    if given:
        return str(Path(given).absolute())
    places = [os.environ.get("VIRTUAL_ENV"), folder / ".venv", folder / "venv"]
    for place in places:
        python = Path(place) / "bin" / "python" if place else None
        if python is not None and python.exists():
            return str(python)
    return sys.executable


def _check_interpreter(python: str) -> None:
    import subprocess

    from svcq.errors import InvalidInput

    try:
        asked = subprocess.run(
            [python, "-c", "import sys; print('%d %d' % sys.version_info[:2])"],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        major, minor = map(int, asked.stdout.split())
    except OSError as error:
        raise InvalidInput(
            f"{python} is not a Python that runs ({error.strerror}): name another."
        ) from None
    except (ValueError, subprocess.TimeoutExpired):
        raise InvalidInput(f"{python} is not a Python that runs: name another.") from None
    if (major, minor) < (3, 9):
        raise InvalidInput(
            f"{python} is Python {major}.{minor}, too old: name one of 3.9 or later."
        )


def _check_imports(project: Project) -> None:
    """As a worker will; its tasks are told, so that one that is missing is missed now."""
    from svcq.worker.probe import tasks_of

    tasks = tasks_of(project)
    shown = ", ".join(tasks[:5]) + (f" and {len(tasks) - 5:,} more" if len(tasks) > 5 else "")
    print(f"Tasks declared there: {shown or 'none; functions are found by module.function'}.")


def _list(options: Namespace) -> None:
    from svcq.config import load

    projects = load().projects
    if options.json:
        print_json([_shown(project._asdict()) for project in projects])
        return
    if not projects:
        print("There is no project: svcq project add . --import MODULE makes one.")
        return
    columns = [
        Column("name"), Column("python", least=12), Column("path", least=12),
        Column("imports", least=12),
    ]  # fmt: skip
    print_table(
        columns, [[p.name, p.python, ", ".join(p.path), ", ".join(p.imports)] for p in projects]
    )


def _shown(project: dict[str, object]) -> dict[str, object]:
    return {"import" if key == "imports" else key: value for key, value in project.items()}


def _remove(options: Namespace) -> None:
    from svcq.config import home, remove_project

    remove_project(home(), options.name)
    print(f"The service and svcq up no longer run the tasks of {options.name}.")


PARSERS = {"project": _project_parser}
