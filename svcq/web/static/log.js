// The output of a job: its end at once, then what comes, as it comes; earlier parts when asked for.
"use strict";

(() => {
  const PART = 256 * 1024;
  const LINES = 20000;
  let shown = null;

  class Log {
    constructor(box) {
      this.box = box;
      this.run = box.dataset.run;
      this.screen = new svcq.Screen(box.querySelector("ol"), LINES);
      this.stream = null;
      this.turn = 0;
      this.hit = -1;
    }

    close() {
      this.turn += 1;
      this.stream?.close();
    }

    async show(run) {
      this.close();
      this.run = run;
      this.screen.clear();
      this.note("");
      const live = this.box.dataset.follow === "yes" && run === this.box.dataset.run;
      if (live) this.follow();
      else if (run === "0") this.note("This job has not run yet.");
      else await this.read(run);
    }

    // What has ended: its end, however long it is.
    async read(run) {
      const turn = this.turn;
      let answer;
      try {
        answer = await fetch(`${this.box.dataset.log}?run=${run}`, { headers: { range: `bytes=-${PART}` } });
      } catch {
        return this.note("The service does not answer.");
      }
      const bytes = new Uint8Array(await answer.arrayBuffer());
      if (turn !== this.turn) return;
      if (answer.ok && !bytes.length) return this.note("It wrote nothing.");
      if (!answer.ok) return this.note("Its output is no longer there.");
      const start = Number(/bytes (\d+)-/.exec(answer.headers.get("content-range") || "")?.[1] ?? 0);
      let text = new TextDecoder().decode(bytes);
      if (start > 0) {
        text = text.slice(text.indexOf("\n") + 1);
        this.screen.add(`[... ${start.toLocaleString()} bytes before this: Download has them all ...]\n`);
      }
      this.screen.add(text);
      this.bottom();
    }

    // What is under way: its last lines, then what comes, through all attempts.
    follow() {
      this.stream = new EventSource(`${this.box.dataset.log}/stream?tail=2000`);
      this.note("No output yet.");
      const on = (kind, act) => this.stream.addEventListener(kind, (event) => act(JSON.parse(event.data)));
      on("run", ({ run }) => {
        if (Number(run) > Number(this.run)) this.screen.add(`\n[run ${run}]\n`);
        this.run = String(run);
      });
      on("output", ({ text }) => {
        const low = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
        this.note("");
        this.screen.add(text);
        if (low) this.bottom();
      });
      on("skipped", ({ bytes }) => this.screen.add(`\n[... ${bytes.toLocaleString()} bytes passed by ...]\n`));
      on("end", () => {
        this.stream.close();
        svcq.soon();
      });
    }

    note(text) {
      this.box.querySelector(".none")?.remove();
      if (!text) return;
      const none = document.createElement("p");
      none.className = "none";
      none.textContent = text;
      this.box.append(none);
    }

    bottom() {
      this.box.scrollTop = this.box.scrollHeight;
    }

    find(text, next) {
      const lines = [...this.screen.list.children];
      const hits = [];
      for (const line of lines) {
        const is = text !== "" && line.textContent.toLowerCase().includes(text.toLowerCase());
        line.classList.toggle("hit", is);
        line.classList.remove("at");
        if (is) hits.push(line);
      }
      if (!hits.length) {
        this.hit = -1;
        return;
      }
      this.hit = next ? (this.hit + 1) % hits.length : hits.length - 1;
      hits[this.hit].classList.add("at");
      hits[this.hit].scrollIntoView({ block: "center" });
    }
  }

  // The tools are kept when the view is drawn anew, so later runs are added to their list.
  const offer = () => {
    const choice = document.querySelector("[data-log-run]");
    const runs = document.querySelector("[data-log-news]")?.dataset.runs.split(" ") ?? [];
    if (!choice || runs.length < 2) return;
    const followed = choice.selectedIndex < 1;
    const there = new Set([...choice.options].map((one) => one.value));
    for (const run of runs) if (!there.has(run)) choice.prepend(new Option(`run ${run}`, run));
    if (followed) choice.selectedIndex = 0;
    choice.closest("label").hidden = false;
  };

  const begin = () => {
    offer();
    const box = document.querySelector("[data-log]");
    if (shown && shown.box !== box) {
      shown.close();
      shown = null;
    }
    if (!box || shown) return;
    shown = new Log(box);
    shown.show(box.dataset.run);
  };

  document.addEventListener("change", (event) => {
    const field = event.target;
    if ("logRun" in field.dataset) shown?.show(field.value);
    if ("logWrap" in field.dataset) shown?.box.classList.toggle("wrap", field.checked);
  });
  document.addEventListener("input", (event) => {
    if ("logFind" in event.target.dataset) shown?.find(event.target.value, false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && "logFind" in (event.target.dataset ?? {})) shown?.find(event.target.value, true);
  });

  // The box itself is kept when the view is drawn anew; what the server now says of it comes beside.
  document.addEventListener("htmx:afterSwap", () => {
    const news = document.querySelector("[data-log-news]");
    if (!shown || !news) return begin();
    offer();
    const { run, follow } = news.dataset;
    const begun = follow === "yes" && shown.box.dataset.follow === "no";
    Object.assign(shown.box.dataset, { run, follow });
    if (begun) shown.show(run);
  });
  begin();
})();
