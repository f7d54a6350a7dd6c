"""The session bus: one connection in a thread and a loop of its own, made again when it is lost.

What we offer there is a table of plain functions, so that a panel that asks for something odd gets
an error, and the tray goes on.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusError

from svcq.errors import Unreachable

_PROPERTIES = "org.freedesktop.DBus.Properties"
_INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
_ERROR = "org.freedesktop.DBus.Error"
_LONGEST_WAIT = 5.0
_PATIENCE = 30.0


class Method(NamedTuple):
    takes: str
    gives: str
    call: Callable[..., Any]


class Interface(NamedTuple):
    name: str
    methods: Mapping[str, Method]
    properties: Mapping[str, tuple[str, Callable[[], Any]]]


class Guest(Protocol):
    """Someone who lives on the bus, and begins anew with each connection."""

    async def begin(self, bus: Bus) -> None: ...

    def heard(self, message: Message) -> None:
        """A signal."""

    def lost(self) -> None: ...


class Bus:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._guests: list[Guest] = []
        self._objects: dict[str, dict[str, Interface]] = {}
        self._bus: MessageBus | None = None
        self._thread = threading.Thread(target=self._run, name="bus", daemon=True)
        self._ready = threading.Event()
        self.error: Exception | None = None
        """Why it was lost."""
        self.connected = False

    def start(self, *guests: Guest) -> None:
        """Connect; Unreachable where there is no session bus at all."""
        self._guests = list(guests)
        if address() is None:
            raise Unreachable(
                "There is no session bus, which the tray needs: "
                "start svcq tray in a desktop session."
            )
        self._thread.start()
        self._ready.wait(_PATIENCE)
        if not self.connected:
            raise Unreachable(
                f"The session bus does not answer ({self.error or 'in time'}): "
                "start svcq tray in a desktop session."
            )

    def stop(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._leave)
        self._thread.join(2)

    def _leave(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    def soon(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it in the loop, if there is a connection: what is not told now is told anew later."""

        async def tried() -> None:
            with suppress(DBusError, OSError, EOFError, asyncio.TimeoutError):
                if self.connected:
                    await act()

        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(tried(), self.loop)

    # In the loop

    def offer(self, path: str, *interfaces: Interface) -> None:
        self._objects[path] = {one.name: one for one in interfaces}

    async def call(
        self, to: str, path: str, member: str, signature: str = "", *values: Any
    ) -> list[Any]:
        """`member` with its interface in front."""
        interface, _, name = member.rpartition(".")
        message = Message(
            destination=to, path=path, interface=interface, member=name, signature=signature,
            body=list(values),
        )  # fmt: skip
        if self._bus is None:
            raise DBusError(f"{_ERROR}.Disconnected", "the session bus is away")
        reply = await asyncio.wait_for(self._bus.call(message), _PATIENCE)
        if reply is None:
            raise DBusError(f"{_ERROR}.NoReply", "no answer")
        if reply.message_type is MessageType.ERROR:
            said = str(reply.body[0]) if reply.body else "no answer"
            raise DBusError(reply.error_name or f"{_ERROR}.Failed", said)
        return list(reply.body)

    async def signal(self, path: str, member: str, signature: str = "", *values: Any) -> None:
        interface, _, name = member.rpartition(".")
        if self._bus is not None:
            await self._bus.send(Message.new_signal(path, interface, name, signature, list(values)))

    async def follow(self, rule: str) -> None:
        """Hear signals that the rule describes."""
        await self.call(_BUS, "/org/freedesktop/DBus", f"{_BUS}.AddMatch", "s", rule)

    async def owner(self, name: str) -> str | None:
        with suppress(DBusError):
            found = await self.call(_BUS, "/", f"{_BUS}.GetNameOwner", "s", name)
            return str(found[0])
        return None

    async def request_name(self, name: str) -> None:
        await self.call(_BUS, "/", f"{_BUS}.RequestName", "su", name, 4)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        with suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self._live())
        self.loop.close()

    async def _live(self) -> None:
        wait = 0.2
        while True:
            try:
                await self._once()
                wait = 0.2
            except (TimeoutError, OSError, EOFError, DBusError, ValueError) as error:
                self.error = error
            except Exception as error:  # noqa: BLE001  (the library has errors of its own)
                self.error = error
            finally:
                self._end()
            self._ready.set()
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _once(self) -> None:
        """From connecting to losing it."""
        bus = MessageBus(bus_address=address(), bus_type=BusType.SESSION)
        try:
            self._bus = await asyncio.wait_for(bus.connect(), _PATIENCE)
            bus.add_message_handler(self._handle)
            self.connected = True
            for guest in self._guests:
                await guest.begin(self)
            self._ready.set()
            await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]
        finally:
            bus.disconnect()

    def _end(self) -> None:
        self.connected = False
        self._bus = None
        for guest in self._guests:
            guest.lost()

    def _handle(self, message: Message) -> Message | bool | None:
        if message.message_type is MessageType.SIGNAL:
            for guest in self._guests:
                guest.heard(message)
            return None
        if message.message_type is not MessageType.METHOD_CALL or message.path not in self._objects:
            return None
        try:
            return self._answer(message, self._objects[message.path])
        except DBusError as error:
            return Message.new_error(message, error.type, error.text)
        except Exception as error:  # noqa: BLE001  (the panel is told, and the tray goes on)
            return Message.new_error(message, f"{_ERROR}.Failed", repr(error))

    def _answer(self, message: Message, interfaces: Mapping[str, Interface]) -> Message | None:
        asked, member = message.interface, message.member or ""
        if asked == _PROPERTIES:
            return _property(message, interfaces)
        if asked == _INTROSPECTABLE:
            return Message.new_method_return(message, "s", [described(interfaces.values())])
        for one in interfaces.values():
            if asked in (one.name, None, "") and member in one.methods:
                method = one.methods[member]
                if (message.signature or "") != method.takes:
                    raise DBusError(f"{_ERROR}.InvalidArgs", f"{member} takes {method.takes!r}")
                given = method.call(*message.body)
                body = [] if not method.gives else [given]
                if isinstance(given, tuple):
                    body = list(given)
                return Message.new_method_return(message, method.gives, body)
        return None


_BUS = "org.freedesktop.DBus"


def _property(message: Message, interfaces: Mapping[str, Interface]) -> Message:
    name = message.body[0] if message.body else ""
    if name not in interfaces:
        raise DBusError(f"{_ERROR}.UnknownInterface", f"there is no {name} here")
    known = interfaces[name].properties
    if message.member == "GetAll":
        values = {key: Variant(kind, get()) for key, (kind, get) in known.items()}
        return Message.new_method_return(message, "a{sv}", [values])
    if message.member != "Get":
        raise DBusError(f"{_ERROR}.PropertyReadOnly", "nothing here can be set")
    if message.body[1] not in known:
        raise DBusError(f"{_ERROR}.UnknownProperty", f"there is no {message.body[1]} here")
    kind, get = known[message.body[1]]
    return Message.new_method_return(message, "v", [Variant(kind, get())])


def described(interfaces: Any) -> str:
    """What an object has, for who asks it (d-feet, busctl introspect)."""
    parts = []
    for one in interfaces:
        parts.append(f'<interface name="{one.name}">')
        for name, method in one.methods.items():
            given = f'<arg direction="in" type="{method.takes}"/>' if method.takes else ""
            got = f'<arg direction="out" type="{method.gives}"/>' if method.gives else ""
            parts.append(f'<method name="{name}">{given}{got}</method>')
        for name, (kind, _) in one.properties.items():
            parts.append(f'<property name="{name}" type="{kind}" access="read"/>')
        parts.append("</interface>")
    return f"<node>{''.join(parts)}</node>"


def owner_changes(name: str) -> str:
    """The rule by which one hears that somebody takes a name, or leaves it."""
    return (
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
        f"member='NameOwnerChanged',arg0='{name}'"
    )


def address() -> str | None:
    """Where the session bus is; None where there is none."""
    if named := os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return named
    folder = os.environ.get("XDG_RUNTIME_DIR")
    if folder and Path(folder, "bus").is_socket():
        return f"unix:path={folder}/bus"
    return None
