"""Windows: what its error numbers mean for a service, and what to do about them."""

from __future__ import annotations

from svcq.errors import NotPermitted, Refused, SvcqError

_SENTENCES = {
    2: ("Windows does not find the program of the service",
        "install svcq{option} anew from where it is now"),
    5: ("access was denied",
        "do it in a terminal that was opened with \"Run as administrator\""),
    1053: ("the service did not answer in time when it was started",
           ("svcq{option} log --service may say why; a virus scanner that looks at Python for the "
           "first time can take longer than Windows waits, so try once more")),
    1056: ("the service runs already", "svcq{option} status tells how it is"),
    1057: ("there is no such account, or its password is wrong",
           "name it as DOMAIN\\name or .\\name, and type the password with care"),
    1058: ("the service is switched off",
           "set its start type in services.msc to Automatic, or install it anew"),
    1060: ("there is no such service", "svcq install{option} makes it"),
    1062: ("the service does not run", "svcq{option} start"),
    1069: ("Windows could not log in as the account of the service",
           ("its password has changed or expired, or it may not log on as a service: install it "
           "anew with --account, which asks for the password and grants that right")),
    1072: ("the service is marked for deletion, which waits until nobody looks at it",
           ("close services.msc, the event viewer and Task Manager, or restart the machine, then "
           "try again")),
    1073: ("a service of that name is there already",
           "svcq uninstall{option} removes one of svcq's; another program's has to go first"),
    1385: ("the account may not log on as a service",
           "install it anew with --account, which grants that right"),
}  # fmt: skip


def why(code: int) -> str:
    """As a part of a sentence."""
    known = _SENTENCES.get(code)
    return f"{known[0]} (error {code})" if known else f"Windows error {code}: {_message(code)}"


def remedy(code: int, option: str) -> str:
    known = _SENTENCES.get(code)
    return known[1].format(option=option) if known else "see the event viewer, under Application"


def refusal(doing: str, code: int, option: str) -> SvcqError:
    """What could not be done to the service, why, and what helps."""
    kind = NotPermitted if code == 5 else Refused
    return kind(f"svcq could not {doing}: {why(code)}; {remedy(code, option)}.")


def _message(code: int) -> str:
    import pywintypes
    import win32api

    try:
        return " ".join(win32api.FormatMessage(code).split()).rstrip(".")
    except pywintypes.error:
        return "no more is known of it"
