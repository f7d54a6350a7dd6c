// Rows: sorting, selecting, and a keyboard for all of it.
"use strict";

(() => {
  const selected = new Set();
  const places = { n: "/", j: "/jobs", q: "/queues", s: "/schedules", w: "/workers", d: "/letters", a: "/activity" };
  let going = false;
  let here = null; // the id of the row that keys act on

  const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];

  // Selecting

  const show = () => {
    const boxes = document.querySelectorAll("[data-select]");
    for (const box of boxes) box.checked = selected.has(box.closest("tr").dataset.job);
    const bulk = document.getElementById("bulk");
    if (!bulk) return;
    bulk.hidden = !selected.size;
    bulk.querySelector("[data-selected]").textContent = selected.size;
    const all = document.querySelector("[data-select-all]");
    if (all) all.checked = boxes.length > 0 && [...boxes].every((box) => box.checked);
  };
  const pick = (job, on) => {
    if (on) selected.add(job);
    else selected.delete(job);
    show();
  };
  document.addEventListener("change", (event) => {
    const box = event.target;
    if ("select" in box.dataset) pick(box.closest("tr").dataset.job, box.checked);
    if ("selectAll" in box.dataset) {
      const on = box.checked; // drawing the first row as chosen says that not all are
      for (const row of rows()) pick(row.dataset.job, on);
    }
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("selectNone" in button.dataset) {
      selected.clear();
      show();
    }
    if (button.dataset.bulk) await bulk(button.dataset.bulk);
    const head = button.closest("th[data-sort]");
    if (head) sort(head);
  });
  const bulk = async (verb) => {
    const jobs = [...selected];
    const refused = [];
    let done = 0;
    for (const job of jobs) {
      try {
        await svcq.call(`POST /api/v1/jobs/${job}/${verb}`);
        done += 1;
      } catch (error) {
        refused.push(error.message);
      }
    }
    if (done) svcq.toast(`${verb}: ${done} ${done === 1 ? "job" : "jobs"}.`);
    if (refused.length) {
      svcq.toast(refused.length === 1 ? refused[0] : `${refused.length} could not: ${refused[0]}`, true);
    }
    selected.clear();
    show();
    svcq.changed();
  };

  // Sorting what is shown; the order is kept when the view is drawn anew

  let order = null;
  const sort = (head) => {
    const index = [...head.parentNode.children].indexOf(head);
    const falling = head.getAttribute("aria-sort") === "ascending";
    order = { index, falling };
    arrange();
  };
  const arrange = () => {
    const body = document.querySelector("[data-rows] tbody");
    if (!order || !body) return;
    const heads = [...document.querySelectorAll("[data-rows] th")];
    const head = heads[order.index];
    if (!head?.dataset.sort) return;
    const value = (row) => row.children[order.index].dataset.value ?? row.children[order.index].textContent.trim();
    const compare = head.dataset.sort === "number"
      ? (a, b) => value(a) - value(b)
      : (a, b) => value(a).localeCompare(value(b));
    const sorted = rows().sort((a, b) => (order.falling ? compare(b, a) : compare(a, b)));
    body.append(...sorted);
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.falling ? "descending" : "ascending");
  };

  // Keys

  const mark = (row) => {
    for (const one of rows()) one.classList.toggle("here", one === row);
    here = row?.id ?? null;
    row?.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = rows();
    const at = all.findIndex((row) => row.id === here);
    mark(all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)]);
  };
  const press = (label) => {
    const row = document.getElementById(here);
    const button = [...(row?.querySelectorAll("button[data-do]") ?? [])].find((one) => label.includes(one.textContent.trim()));
    if (button) svcq.act(button);
  };
  const keys = {
    n: () => svcq.open("new-job"),
    "?": () => svcq.open("keys"),
    "/": () => (document.querySelector("main input[type=search]") ?? { focus: () => location.assign("/jobs") }).focus(),
    j: () => step(1),
    k: () => step(-1),
    x: () => {
      const row = document.getElementById(here);
      if (row?.dataset.job) pick(row.dataset.job, !selected.has(row.dataset.job));
    },
    Enter: () => {
      const to = document.getElementById(here)?.dataset.href;
      if (to) location.assign(to);
    },
    c: () => press(["Stop", "Cancel"]),
    r: () => press(["Retry"]),
    h: () => press(["Hold", "Release"]),
    g: () => {
      going = true;
      setTimeout(() => (going = false), 1200);
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // What had the focus in a dialog keeps it for a moment after that is closed.
    const target = event.target.closest("dialog:not([open])") ? document.body : event.target;
    const typing = target.closest("input, select, textarea, dialog[open], .terminal");
    if (event.key === "Escape" && typing?.type === "search") typing.blur();
    if (typing || (event.key === "Enter" && target.closest("a, button"))) return;
    if (going && places[event.key]) {
      location.assign(places[event.key]);
    } else if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  document.addEventListener("htmx:afterSwap", () => {
    const there = new Set(rows().map((row) => row.dataset.job));
    for (const job of selected) if (!there.has(job)) selected.delete(job);
    arrange();
    show();
    if (here) document.getElementById(here)?.classList.add("here");
  });
})();
