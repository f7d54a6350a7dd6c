"""What the dialogs have in common: a window with fields, a place for what went wrong, buttons."""

from __future__ import annotations

import queue
import threading
import tkinter as tk
from collections.abc import Callable
from contextlib import suppress
from tkinter import ttk
from typing import Any

from svcq.ends import plain

from .door import WRONG
from .icon import draw
from .model import Icon

PAD = 8
_WIDTH = 46
_RED = "#b3261e"
_QUIET = "#5f6b70"


def _choose_all(event: tk.Event[Any]) -> str:
    event.widget.select_range(0, "end")
    event.widget.icursor("end")
    return "break"


class Window:
    """Fields stand one below the other; an error is told below them, and nothing is lost."""

    def __init__(self, title: str) -> None:
        self.root = tk.Tk(className="svcq")
        self.root.title(title)
        self.root.withdraw()
        self._style()
        self._icon = self._photo(64)
        self.root.iconphoto(True, self._icon)
        self.body = ttk.Frame(self.root, padding=2 * PAD)
        self.body.grid(sticky="nsew")
        self.body.columnconfigure(1, weight=1)
        self.root.columnconfigure(0, weight=1)
        self._row = 0
        self.error = tk.StringVar()
        self.first: tk.Widget | None = None
        """Where one begins to write."""
        self._busy = False
        self._done: queue.Queue[Callable[[], None]] = queue.Queue()
        self._buttons: list[ttk.Button] = []
        self.root.bind("<Escape>", lambda _: self.close())
        # The toolkit's own is older than what everybody expects.
        for kind in ("TEntry", "TCombobox"):
            self.root.bind_class(kind, "<Control-a>", _choose_all)

    def _style(self) -> None:
        scale = max(self.root.winfo_fpixels("1i") / 72, 1.0)
        self.root.tk.call("tk", "scaling", scale)
        style = ttk.Style(self.root)
        with suppress(tk.TclError):
            style.theme_use("clam")
        style.configure("TFrame", background="#f6f7f7")
        style.configure(".", background="#f6f7f7", foreground="#20282c", font="TkDefaultFont")
        style.configure("Error.TLabel", foreground=_RED)
        style.configure("Hint.TLabel", foreground=_QUIET)
        style.configure("Go.TButton", background="#0b7268", foreground="#ffffff")
        style.map("Go.TButton", background=[("active", "#0e8a7e"), ("disabled", "#9bb5b1")])

    def _photo(self, size: int) -> tk.PhotoImage:
        from io import BytesIO

        data = BytesIO()
        draw(Icon("idle"), size).save(data, "PNG")
        return tk.PhotoImage(data=data.getvalue())

    # Fields

    def field(self, label: str, widget: tk.Widget, hint: str = "") -> None:
        ttk.Label(self.body, text=label).grid(row=self._row, column=0, sticky="w", pady=PAD // 2)
        widget.grid(row=self._row, column=1, sticky="ew", padx=(PAD, 0), pady=PAD // 2)
        if hint:
            self._row += 1
            said = ttk.Label(self.body, text=hint, style="Hint.TLabel")
            said.grid(row=self._row, column=1, sticky="w", padx=(PAD, 0))
        self._row += 1

    def entry(self, label: str, value: str = "", hint: str = "") -> tk.StringVar:
        variable = tk.StringVar(value=value)
        self.field(label, ttk.Entry(self.body, textvariable=variable, width=_WIDTH), hint)
        return variable

    def choice(
        self, label: str, value: str, values: tuple[str, ...], *, free: bool = True, hint: str = ""
    ) -> tuple[tk.StringVar, ttk.Combobox]:
        variable = tk.StringVar(value=value)
        box = ttk.Combobox(
            self.body, textvariable=variable, values=values, width=_WIDTH,
            state="normal" if free else "readonly",
        )  # fmt: skip
        self.field(label, box, hint)
        return variable, box

    def check(self, label: str, *, on: bool) -> tk.BooleanVar:
        variable = tk.BooleanVar(value=on)
        self.field("", ttk.Checkbutton(self.body, text=label, variable=variable))
        return variable

    def text(self, words: str) -> None:
        said = ttk.Label(self.body, text=words, wraplength=420, justify="left")
        said.grid(row=self._row, column=0, columnspan=2, sticky="w", pady=PAD // 2)
        self._row += 1

    def buttons(self, label: str, act: Callable[[], None], leave: str = "Cancel") -> None:
        said = ttk.Label(
            self.body, textvariable=self.error, style="Error.TLabel", wraplength=420, justify="left"
        )
        said.grid(row=self._row, column=0, columnspan=2, sticky="w", pady=(PAD, 0))
        row = ttk.Frame(self.body)
        row.grid(row=self._row + 1, column=0, columnspan=2, sticky="e", pady=(2 * PAD, 0))
        if leave:
            ttk.Button(row, text=leave, command=self.close).grid(row=0, column=0, padx=(0, PAD))
        go = ttk.Button(row, text=label, command=act, style="Go.TButton")
        go.grid(row=0, column=1)
        self._buttons = [go]
        self.root.bind("<Return>", lambda _: act())

    # Doing

    def work(self, act: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do it beside the window, which goes on being drawn; what it raises is told in place."""
        if self._busy:
            return
        self._busy = True
        self.error.set("")
        for button in self._buttons:
            button.state(["disabled"])

        def finish(said: str, result: Any = None) -> None:
            self._finish(said)
            if not said:
                then(result)

        def run() -> None:
            try:
                result = act()
            except WRONG as error:
                said = plain(str(error) or type(error).__name__, 400)
                self._done.put(lambda: finish(said))
            else:
                self._done.put(lambda: finish("", result))

        threading.Thread(target=run, daemon=True).start()
        self._poll()

    def _poll(self) -> None:
        try:
            self._done.get_nowait()()
        except queue.Empty:
            self.root.after(20, self._poll)

    def _finish(self, said: str) -> None:
        self._busy = False
        self.error.set(said)
        for button in self._buttons:
            button.state(["!disabled"])

    def show(self) -> None:
        """Until it is closed; in the middle of the display."""
        self.root.update_idletasks()
        width, height = self.root.winfo_reqwidth(), self.root.winfo_reqheight()
        x = (self.root.winfo_screenwidth() - width) // 2
        y = (self.root.winfo_screenheight() - height) // 3
        self.root.geometry(f"+{x}+{y}")
        self.root.minsize(width, height)
        self.root.deiconify()
        self.root.lift()
        (self.first or self.root).focus_force()
        self.root.mainloop()

    def close(self) -> None:
        self.root.destroy()
