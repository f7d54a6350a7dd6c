"""Windows: the process of the machine's service, as its service manager sees it.

It is told first that we stop, and then we stop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from svcq.errors import Refused
from svcq.host import windows_service
from svcq.host.windows_account import SERVICE
from svcq.host.windows_processes import ask_process_to_end

_NOT_STARTED_BY_IT = 1063
_STOP_MS, _PRESHUTDOWN_MS = 30_000, 180_000
_STARTED, _STOPPED = 1, 2  # the numbers of our events
_FAILED_OURSELVES = 1066  # ERROR_SERVICE_SPECIFIC_ERROR


def be_service(run: Callable[[], int]) -> int:
    """Run as a service of Windows, which has to have started us; its end is ours."""
    import pywintypes
    import servicemanager

    code = [1]
    if sys.stdout is None or sys.stderr is None:  # a service has none; its log is a file
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as it lasts)
    servicemanager.Initialize(SERVICE, None)
    servicemanager.PrepareToHostSingle(_service_class(run, code))
    try:
        serve: Any = servicemanager.StartServiceCtrlDispatcher
        serve()
    except pywintypes.error as error:
        if error.winerror != _NOT_STARTED_BY_IT:
            raise
        raise Refused(
            "Windows runs this as a service: svcq start --system lets it, and svcq up runs workers "
            "in the foreground."
        ) from None
    return code[0]


def _service_class(run: Callable[[], int], code: list[int]) -> type:
    import win32service
    import win32serviceutil

    class Service(win32serviceutil.ServiceFramework):  # type: ignore[misc, unused-ignore]
        _svc_name_ = SERVICE

        def GetAcceptedControls(self) -> int:  # noqa: N802 (pywin32 names it)
            return int(win32service.SERVICE_ACCEPT_STOP | win32service.SERVICE_ACCEPT_PRESHUTDOWN)

        def SvcDoRun(self) -> None:  # noqa: N802 (as above)
            windows_service.tell(self._heard)
            note(_STARTED, "svcq has started.")
            code[0] = run()
            note(_STOPPED, "svcq has stopped.")
            if code[0]:
                # So that Windows takes it for the failure it is, and starts us anew.
                self.ReportServiceStatus(
                    win32service.SERVICE_STOPPED, 0, _FAILED_OURSELVES, code[0]
                )
                os._exit(code[0])

        def _heard(self, text: str) -> None:
            if text == "STOPPING=1":
                self.ReportServiceStatus(win32service.SERVICE_STOP_PENDING, _STOP_MS)

        def SvcStop(self) -> None:  # noqa: N802 (as above)
            self.ReportServiceStatus(win32service.SERVICE_STOP_PENDING, _STOP_MS)
            ask_process_to_end(os.getpid())

        def SvcOtherEx(self, control: int, kind: int, data: Any) -> None:  # noqa: ARG002, N802
            if control == win32service.SERVICE_CONTROL_PRESHUTDOWN:
                self.ReportServiceStatus(win32service.SERVICE_STOP_PENDING, _PRESHUTDOWN_MS)
                windows_service.ending.session_over()

    return Service


def note(number: int, text: str) -> None:
    """In Windows' own log of events; its absence is no reason to fail."""
    import pywintypes
    import servicemanager
    import win32evtlog
    import win32evtlogutil

    del servicemanager
    with suppress(pywintypes.error):
        win32evtlogutil.ReportEvent(
            SERVICE, number, eventType=win32evtlog.EVENTLOG_INFORMATION_TYPE, strings=[text]
        )
