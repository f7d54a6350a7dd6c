"""Every view and every click of the page, as a person would."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from playwright.sync_api import Browser, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from svcq.jobs import State
from tests.e2e.reader import Reader, login_address
from tests.helpers import eventually
from tests.lifecycle.homes import PATIENCE, Home

VIEWS = ("/", "/jobs", "/queues", "/schedules", "/workers", "/letters", "/activity")
GONE_ON = "while [ ! -e stop ]; do sleep 0.05; done"


def fill(home: Home) -> tuple[int, ...]:
    """One that runs, one that waits for it, one that is dead, one that was silent, and a task."""
    home.client.queue("video", concurrency=1)
    script = 'echo "40 half way" > "$SVCQ_PROGRESS"; printf "\\033[31mred\\033[0m <b>&amp;\\n"; '
    runs = home.add(script + GONE_ON, queue="video", name="encode")
    eventually(lambda: home.client.get(runs).progress, PATIENCE)
    waits = home.add("echo second", queue="video", priority=3)
    dead = home.add("echo it broke >&2; exit 3", name="breaks")
    home.client.schedule("nightly", "echo night", cron="0 3 * * *", tz="Europe/Paris")
    assert home.ended(dead).state is State.DEAD
    silent = home.add("exit 0")
    assert home.ended(silent).state is State.COMPLETED
    task = home.client.add([home.client.new_task("films.cut", [1], {"to": "x"}, hold=True)])[0].id
    return runs, waits, dead, silent, task


def test_every_view_is_drawn_without_a_complaint(home: Home, reader: Reader) -> None:
    for path in (*VIEWS, *(f"/jobs/{job}" for job in fill(home))):
        reader.go(path)
        expect(reader.page.locator("h1")).to_be_visible()
        reader.fits()


def test_a_view_with_nothing_in_it_says_what_to_do(reader: Reader) -> None:
    for path in VIEWS:
        reader.go(path)
        if path != "/workers":  # svcq up keeps one
            expect(reader.page.locator(".empty").first).to_be_visible()


def test_now_shows_what_runs_and_what_waits_and_why(home: Home, reader: Reader) -> None:
    runs, waits, *_ = fill(home)
    reader.go("/")
    reader.sees("half way", f"#run-{runs}")
    reader.sees("red <b>&amp;", f"#run-{runs} .last")
    expect(reader.page.locator(f"#run-{runs} progress")).to_have_attribute("value", "0.4")
    reader.sees("at its limit of 1", f"#next-{waits}")
    reader.sees("nightly")


def test_the_page_follows_by_itself(home: Home, reader: Reader) -> None:
    job = home.add(GONE_ON, name="watched")
    reader.sees("watched", f"#run-{job}")
    (home.work / "stop").touch()
    reader.sees("watched", f"#ended-{job}")


def test_queueing_a_command(home: Home, reader: Reader) -> None:
    reader.button("Queue a command").click()
    reader.fills_in("new-job", command="echo $((6*7))", queue="sums", name="answer")
    reader.sends("new-job")
    reader.is_told("is queued")
    job = eventually(lambda: home.client.list(queue="sums"), PATIENCE)[0]
    assert (job.name, job.command) == ("answer", "echo $((6*7))")
    assert home.ended(job.id).state is State.COMPLETED
    assert home.log(job.id).read_text() == "42\n"


def test_a_wrong_form_says_what_is_wrong_and_keeps_what_was_typed(
    home: Home, reader: Reader
) -> None:
    reader.page.keyboard.press("n")
    reader.fills_in("new-job", command="true", cwd="/no/such/folder")
    reader.sends("new-job")
    expect(reader.page.locator("#new-job .problem")).to_contain_text("/no/such/folder")
    expect(reader.page.locator("#new-job [name=command]")).to_have_value("true")
    assert home.client.list() == []
    reader.complaints.clear()  # the browser's own note of the answer's status


def test_stopping_and_running_again(home: Home, reader: Reader) -> None:
    job = home.add(GONE_ON, name="long")
    reader.go(f"/jobs/{job}")
    reader.button("Stop").click()
    reader.is_told(f"Job {job} is being stopped.")
    reader.sees("cancelled", ".headline")
    reader.button("Retry").click()
    reader.sees("processing", ".headline")
    assert home.client.get(job).run == 2


def test_pausing_a_running_command(home: Home, reader: Reader) -> None:
    job = home.add(GONE_ON)
    reader.go(f"/jobs/{job}")
    reader.button("Pause").click()
    reader.sees("paused", ".headline")
    assert home.client.get(job).paused
    reader.button("Go on").click()
    expect(reader.page.locator(".headline .paused")).to_have_count(0)
    assert not home.client.get(job).paused


def test_output_is_live_coloured_and_searchable(home: Home, reader: Reader) -> None:
    line = 'i=0; while [ ! -e stop ]; do i=$((i+1)); printf "\\033[32mline\\033[0m %d\\n" $i; '
    job = home.add(line + "sleep 0.05; done; echo the end")
    reader.go(f"/jobs/{job}")
    log = reader.page.locator("#log")
    expect(log).to_contain_text("line 20")
    expect(log.locator("span.f2").first).to_have_text("line")
    (home.work / "stop").touch()
    expect(log).to_contain_text("the end")
    reader.sees("completed", ".headline")
    reader.page.locator("[data-log-find]").fill("the end")
    expect(log.locator("li.hit.at")).to_have_text("the end")


def test_output_cannot_become_part_of_the_page(home: Home, reader: Reader) -> None:
    hostile = "<img src=x onerror=alert(1)><script>document.title='owned'</script>"
    job = home.add(["printf", "%s\\n\\033]0;owned\\007\\033[2Jafter\\n", hostile], name=hostile)
    home.ended(job)
    for path in ("/", "/jobs", f"/jobs/{job}"):
        reader.go(path)
        reader.sees(hostile)
        assert reader.page.locator("main img, main script").count() == 0
    expect(reader.page.locator("#log")).to_contain_text("after")
    assert "owned" not in reader.page.title().replace(hostile, "")


def test_each_run_has_its_output_and_new_ones_come_to_the_list(home: Home, reader: Reader) -> None:
    job = home.add("echo this is $(basename $SVCQ_RUN)")
    home.ended(job)
    reader.go(f"/jobs/{job}")
    log, choice = reader.page.locator("#log"), reader.page.locator("[data-log-run]")
    expect(log).to_contain_text("this is")
    expect(choice).to_be_hidden()
    reader.button("Retry").click()
    expect(choice).to_be_visible()
    expect(choice.locator("option")).to_have_text(["run 2", "run 1"])
    reader.sees("completed", ".headline")
    choice.select_option("1")
    expect(log).to_contain_text("this is")
    with reader.page.expect_download() as download:
        reader.page.locator("[data-log-raw]").click()
    assert download.value.suggested_filename == f"job-{job}.log"


def test_times_are_told_in_the_zone_of_the_reader(browser: Browser, home: Home) -> None:
    at = datetime(2031, 5, 1, 12, 0, 30, tzinfo=UTC)
    job = home.add("true", run_at=at)
    home.client.schedule("once", "true", at=at)
    for zone, hour in (("Asia/Tokyo", "9:00:30"), ("America/New_York", "8:00:30")):
        reader = Reader(browser, home, timezone_id=zone, locale="en-US")
        reader.go(f"/jobs/{job}")
        reader.sees(hour, ".why")
        reader.sees(hour, ".facts-list")
        reader.go("/schedules")
        reader.sees(hour)
        reader.close()


def test_what_waits_is_held_let_go_put_first_and_cancelled(home: Home, reader: Reader) -> None:
    home.client.queue("later", paused=True)
    first, second = (home.add(f"echo {word}", queue="later") for word in ("one", "two"))
    reader.page.get_by_role("button", name=f"Put job {second} first").click()
    reader.is_told(f"Job {second} is first in its queue.")
    assert [job.id for job in home.client.first_in_line()] == [second, first]
    reader.page.get_by_role("button", name=f"Cancel job {second}").click()
    eventually(lambda: home.client.get(second).state is State.CANCELLED, PATIENCE)
    reader.go(f"/jobs/{first}")
    for button, state in (("Hold", State.HELD), ("Release", State.PENDING)):
        reader.button(button).click()
        reader.sees(state.value, ".headline")
        assert home.client.get(first).state is state
    reader.button("Put first").click()
    reader.is_told(f"Job {first} is first in its queue.")
    reader.button("Cancel").click()
    reader.sees("cancelled", ".headline")


def test_what_runs_is_paused_and_stopped_from_now(home: Home, reader: Reader) -> None:
    job = home.add(GONE_ON)
    for button, paused in ((f"Pause job {job}", True), (f"Let job {job} go on", False)):
        reader.page.get_by_role("button", name=button).click()
        eventually(lambda paused=paused: home.client.get(job).paused is paused, PATIENCE)  # type: ignore[misc]
    reader.button("Stop", f"#run-{job}").click()
    assert home.ended(job).state is State.CANCELLED


def test_filters_and_bulk_actions(home: Home, reader: Reader) -> None:
    held = [home.add(f"echo {word}", hold=True, tags=["t"]) for word in ("apple", "pear", "plum")]
    reader.go("/jobs")
    reader.page.locator("input[type=search]").fill("pear")
    expect(reader.page.locator("tbody tr")).to_have_count(1)
    reader.page.locator("input[type=search]").fill("")
    expect(reader.page.locator("tbody tr")).to_have_count(3)
    reader.page.locator("[data-select-all]").check()
    reader.button("Release", "#bulk").click()
    for job in held:
        assert home.ended(job).state is State.COMPLETED
    reader.go("/jobs?state=completed&tag=t")
    expect(reader.page.locator("tbody tr")).to_have_count(3)


def test_sorting_is_kept_when_the_view_is_drawn_anew(home: Home, desk: Reader) -> None:
    for priority in (1, 3, 2):
        home.add("true", hold=True, priority=priority)
    desk.go("/jobs")
    desk.button("Priority").click()
    cells = desk.page.locator("tbody td:nth-child(6)")
    expect(cells).to_have_text(["1", "2", "3"])
    home.add("true", hold=True, priority=9)
    expect(cells).to_have_text(["1", "2", "3", "9"])


def test_all_of_it_by_keyboard(home: Home, reader: Reader) -> None:
    home.add("echo first", hold=True)
    second = home.add("echo second", hold=True)

    def is_there() -> bool:
        """The two keys count as one only when they are pressed soon after each other."""
        reader.page.keyboard.press("g")
        reader.page.keyboard.press("j")
        with suppress(PlaywrightTimeout):
            reader.page.wait_for_url("**/jobs", timeout=3000)
        return reader.page.url.endswith("/jobs")

    eventually(is_there, PATIENCE)
    reader.is_live()
    reader.page.keyboard.press("j")
    reader.page.keyboard.press("h")
    assert home.ended(second).state is State.COMPLETED
    reader.page.keyboard.press("?")
    expect(reader.page.locator("#keys")).to_be_visible()
    reader.page.keyboard.press("Escape")
    expect(reader.page.locator("#keys")).to_be_hidden()
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url(f"**/jobs/{second}")


def test_editing_a_job_that_waits(home: Home, reader: Reader) -> None:
    job = home.add("echo before", hold=True)
    reader.go(f"/jobs/{job}")
    reader.button("Edit").click()
    reader.fills_in("edit-job", command="echo after", priority="7")
    reader.sends("edit-job")
    reader.is_told("was changed")
    edited = home.client.get(job)
    assert (edited.command, edited.priority) == ("echo after", 7)


def test_setting_up_and_pausing_a_queue(home: Home, reader: Reader) -> None:
    reader.go("/queues")
    reader.button("New queue").click()
    reader.fills_in("edit-queue", name="video", concurrency="2", rate="10/1m")
    reader.sends("edit-queue")
    reader.sees("rate 10/1m")
    assert home.client.queue("video").concurrency == 2
    reader.button("Edit").click()
    expect(reader.page.locator("#edit-queue [name=concurrency]")).to_have_value("2")
    reader.fills_in("edit-queue", concurrency="")
    reader.sends("edit-queue")
    eventually(lambda: home.client.queue("video").concurrency is None, PATIENCE)
    reader.button("Pause").click()
    reader.sees("paused")
    assert home.client.queue("video").paused
    reader.button("Resume").click()
    eventually(lambda: not home.client.queue("video").paused, PATIENCE)


def test_pausing_everything(home: Home, reader: Reader) -> None:
    home.client.queue("mail", weight=2)
    home.client.queue("video", weight=2)
    reader.go("/")
    reader.button("Pause all").click()
    expect(reader.button("Resume all")).to_be_visible()
    assert all(queue.paused for queue in home.client.queues())
    reader.button("Resume all").click()
    eventually(lambda: not any(queue.paused for queue in home.client.queues()), PATIENCE)


def test_a_schedule_is_previewed_added_run_and_removed(home: Home, reader: Reader) -> None:
    reader.go("/schedules")
    reader.button("New schedule").click()
    reader.fills_in("new-schedule", name="nightly", command="echo night", tz="Europe/Paris")
    reader.fills_in("new-schedule", rule="30 2 * * *")
    expect(reader.page.locator("[data-preview] li")).to_have_count(10)
    reader.sends("new-schedule")
    reader.is_told("Schedule nightly is set.")
    reader.sees("30 2 * * *")
    reader.button("Run now").click()
    job = eventually(home.client.list, PATIENCE)[0]
    assert home.ended(job.id).state is State.COMPLETED
    reader.button("Pause").click()
    reader.sees("paused")
    reader.button("Resume").click()
    eventually(lambda: not home.client.get_schedule("nightly").paused, PATIENCE)
    reader.button("Remove nightly").click()
    reader.button("Yes", "#ask").click()
    reader.sees("There are no schedules yet.")
    assert home.client.schedules() == []


def test_of_many_schedules_the_next_are_shown_and_the_rest_by_pages(
    home: Home, desk: Reader
) -> None:
    for n in range(60):
        home.client.schedule(f"s{n:02}", "true", cron="0 0 1 1 *", tz="Europe/Paris")
    home.client.schedule("zebra", "true", every="2h")
    desk.go("/")
    desk.sees("zebra", "#soon-1")
    desk.go("/schedules")
    expect(desk.page.locator("tbody tr")).to_have_count(50)
    desk.page.get_by_role("link", name="More").click()
    expect(desk.page.locator("tbody tr")).to_have_count(11)


def test_dead_letters_are_run_again_and_removed(home: Home, reader: Reader) -> None:
    jobs = [home.add("test -e mended") for _ in range(3)]
    for job in jobs:
        assert home.ended(job).state is State.DEAD
    reader.go("/letters")
    expect(reader.page.locator(".list li")).to_have_count(3)
    (home.work / "mended").touch()
    reader.button("Retry", f"#dead-{jobs[0]}").click()
    eventually(lambda: home.client.get(jobs[0]).state is State.COMPLETED, PATIENCE)
    (home.work / "mended").unlink()
    reader.button("Retry all").click()
    reader.button("Yes", "#ask").click()
    reader.is_told("All dead jobs run again.")
    eventually(lambda: [home.client.get(job).run for job in jobs[1:]] == [2, 2], PATIENCE)
    expect(reader.page.locator(".list li")).to_have_count(2)
    reader.button("Remove all").click()
    reader.button("Yes", "#ask").click()
    reader.sees("No dead letters.")


def test_a_worker_is_drained(home: Home, reader: Reader) -> None:
    worker = eventually(home.client.workers, PATIENCE)[0]
    reader.go("/workers")
    reader.button("Drain", f"#worker-{worker.id}").click()
    eventually(lambda: worker.id not in {one.id for one in home.client.workers()}, PATIENCE)
    job = home.add(GONE_ON)
    home.wait_until_running(job)
    (other,) = home.client.workers()
    reader.button("Stop", f"#worker-{other.id}").click()
    reader.button("Yes", "#ask").click()
    eventually(lambda: home.client.get(job).run == 2, PATIENCE)  # by the next
    assert home.client.get(job).failures == 0


def test_charts_are_drawn(home: Home, reader: Reader) -> None:
    home.run("true")
    reader.go("/activity")
    expect(reader.page.locator("#chart-jobs canvas")).to_be_visible()
    expect(reader.page.locator("#chart-times canvas")).to_be_visible()
    reader.page.locator("select[name=minutes]").select_option("1440")
    reader.page.wait_for_url("**minutes=1440**")
    expect(reader.page.locator("#chart-jobs canvas")).to_be_visible()


def test_nobody_else_gets_in(browser: Browser, home: Home) -> None:
    address = login_address(home)
    origin = address.partition("/login")[0]
    page = browser.new_page()
    page.goto(f"{origin}/jobs")
    assert page.url == f"{origin}/login"
    expect(page.locator("#said")).to_contain_text("svcq open")
    page.close()


def test_who_may_only_look_is_offered_nothing_to_press(browser: Browser, home: Home) -> None:
    jobs = fill(home)
    reader = Reader(browser, home, "--read-only")
    for path in (*VIEWS, *(f"/jobs/{job}" for job in jobs)):
        reader.go(path)
        expect(reader.page.locator("h1")).to_be_visible()
        pressed = reader.page.locator("main button:visible").all_inner_texts()
        assert set(pressed) <= {"Job", "What", "State", "Queue", "Priority", "When"}, path
    reader.page.keyboard.press("n")
    expect(reader.page.locator("dialog[open]")).to_have_count(0)
    reader.close()


def test_a_code_lets_in_once(browser: Browser, home: Home) -> None:
    address = login_address(home)
    first, second = browser.new_page(), browser.new_page()
    first.goto(address)
    first.wait_for_url("**/")
    second.goto(address)
    expect(second.locator("#said")).to_contain_text("svcq open")
    assert "#" not in second.url
    first.close()
    second.close()


def test_a_service_that_goes_away_is_told_and_found_again(home: Home, reader: Reader) -> None:
    up = home.started[-1]
    up.terminate()
    up.wait(PATIENCE)
    expect(reader.page.locator("#live")).to_have_attribute("data-state", "away")
    reader.complaints.clear()


def test_the_theme_is_chosen_and_kept(desk: Reader) -> None:
    desk.page.locator("[data-theme-next]").click()
    expect(desk.page.locator("html")).to_have_attribute("data-theme", "light")
    desk.go("/jobs")
    expect(desk.page.locator("html")).to_have_attribute("data-theme", "light")
