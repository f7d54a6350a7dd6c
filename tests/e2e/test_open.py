"""The address of the page: where it leads."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.e2e.reader import login_address
from tests.lifecycle.homes import Home


def test_an_address_for_a_job_leads_there(browser: Browser, home: Home) -> None:
    job = home.run("echo here it is", name="render")
    page = browser.new_page()
    page.goto(login_address(home, "render"))
    page.wait_for_url(f"**/jobs/{job.id}")
    expect(page.locator("main")).to_contain_text("render")
    page.close()


def test_an_address_leads_to_no_other_place(browser: Browser, home: Home) -> None:
    page = browser.new_page()
    page.goto(login_address(home) + "&job=../../evil")
    page.wait_for_url("**/")
    page.close()


def test_a_job_that_is_not_there_has_no_page(home: Home) -> None:
    login_address(home)
    ran = home.svcq("open", "--print", "nobody")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "svcq: There is no job named 'nobody': list the jobs to see their names.\n"
