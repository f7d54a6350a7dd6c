"""Someone in front of the page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home

expect.set_options(timeout=PATIENCE * 1000)


class Reader:
    def __init__(self, browser: Browser, home: Home, *options: str, **seen_with: Any) -> None:
        self._context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **seen_with}
        )
        self._context.set_default_timeout(PATIENCE * 1000)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(login_address(home, *options))
        self.page.wait_for_url("**/")
        self.origin = self.page.url.rstrip("/")
        self.is_live()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def close(self) -> None:
        self._context.close()
        assert self.complaints == []

    def go(self, path: str) -> None:
        self.page.goto(self.origin + path)
        self.is_live()

    def is_live(self) -> None:
        expect(self.page.locator("#live")).to_have_attribute("data-state", "live")

    def fits(self) -> None:
        wide = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{self.page.url} is wider than the screen by {wide} pixels"

    def sees(self, text: str, where: str = "main") -> None:
        expect(self.page.locator(where)).to_contain_text(text)

    def button(self, name: str, within: str = "main") -> Locator:
        return self.page.locator(within).get_by_role("button", name=name, exact=True).first

    def is_told(self, text: str) -> None:
        expect(self.page.locator("#toasts")).to_contain_text(text)

    def fills_in(self, dialog: str, **fields: str) -> None:
        for name, value in fields.items():
            self.page.locator(f"#{dialog} [name={name}]").fill(value)

    def sends(self, dialog: str) -> None:
        self.page.locator(f"#{dialog} .button.main").click()


def login_address(home: Home, *options: str) -> str:
    def opened() -> str:
        ran = home.svcq("open", "--print", *options)
        return ran.stdout.strip() if ran.returncode == 0 else ""

    return eventually(opened, PATIENCE, 0.2)
