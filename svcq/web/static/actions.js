// What a click does: it calls the API, and tells what came of it.
"use strict";

(() => {
  const shapes = {};

  svcq.toast = (text, bad = false) => {
    const toast = document.createElement("div");
    toast.className = bad ? "toast bad" : "toast";
    toast.textContent = text;
    if (bad) toast.setAttribute("role", "alert");
    document.getElementById("toasts").append(toast);
    setTimeout(() => toast.remove(), bad ? 9000 : 4000);
  };

  svcq.changed = () => document.body.dispatchEvent(new Event("svcq:changed"));

  // The answer as an object; an Error with the sentence of the service where it says no.
  svcq.call = async (call, body) => {
    const [method, path] = call.split(" ", 2);
    const init = { method, headers: { accept: "application/json" } };
    if (method !== "GET" && method !== "DELETE") {
      init.headers["content-type"] = "application/json";
      init.body = JSON.stringify(body ?? {});
    }
    let answer;
    try {
      answer = await fetch(path, init);
    } catch {
      throw new Error("The service does not answer: svcq status tells how it is.");
    }
    const text = await answer.text();
    let said = null;
    try {
      said = text ? JSON.parse(text) : null;
    } catch {
      // Not from the API; the status has to do.
    }
    if (answer.status === 401) location.reload();
    if (!answer.ok) throw new Error(said?.detail || `The service answered ${answer.status}.`);
    return said;
  };

  const ask = (text, label) => new Promise((resolve) => {
    const dialog = document.getElementById("ask");
    document.getElementById("ask-title").textContent = label || "Are you sure?";
    document.getElementById("ask-text").textContent = text;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  svcq.act = async (button) => {
    if (button.dataset.ask && !(await ask(button.dataset.ask, button.textContent.trim()))) return;
    button.disabled = true;
    try {
      const body = button.dataset.body;
      for (const call of button.dataset.do.split(", ")) {
        await svcq.call(call, body === undefined ? undefined : JSON.parse(body));
      }
      svcq.toast(button.dataset.said);
      svcq.changed();
      setTimeout(svcq.soon, 900); // what a worker has to do first, such as letting a job stand still
    } catch (error) {
      svcq.toast(error.message, true);
    } finally {
      button.disabled = false;
    }
  };

  // Forms

  const filled = (form) => {
    const said = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") {
        if (field.checked) said[field.name] = true;
      } else if (field.value.trim() !== "") {
        said[field.name] = field.type === "number" ? Number(field.value) : field.value.trim();
      } else if (field.dataset.was) {
        said[field.name] = null;
      }
    }
    return said;
  };

  shapes.job = (said) => {
    if (said.tags) said.tags = said.tags.split(/[\s,]+/).filter(Boolean);
    return said;
  };
  shapes.queue = (said) => {
    delete said.name;
    return said;
  };
  shapes.schedule = ({ kind, rule, ...said }) => {
    if (kind === "cron") return { ...said, cron: rule };
    delete said.tz;
    return { ...said, [kind]: rule };
  };

  const send = async (form) => {
    const problem = form.querySelector(".problem");
    const button = form.querySelector(".button.main");
    const values = filled(form);
    const name = (text, from) => text.replace(/\{(\w+)\}/g, (_, key) => from(values[key], key));
    problem.hidden = true;
    button.disabled = true;
    try {
      const call = name(form.dataset.send, (value) => encodeURIComponent(value));
      const answer = await svcq.call(call, shapes[form.dataset.shape]({ ...values }));
      svcq.toast(name(form.dataset.said, (value, key) => answer?.[key] ?? value ?? ""));
      form.closest("dialog").close();
      form.reset();
      svcq.changed();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  };

  const open = (id, fill) => {
    const dialog = document.getElementById(id);
    if (!dialog) return;
    dialog.querySelector(".problem")?.setAttribute("hidden", "");
    if (fill) {
      for (const field of dialog.querySelectorAll("[name]")) {
        field.value = fill[field.name] ?? "";
        if (field.value) field.dataset.was = field.value;
        else delete field.dataset.was;
        if (field.name === "name") field.readOnly = Boolean(fill.name);
      }
    }
    svcq.tell(dialog);
    dialog.showModal();
  };
  svcq.open = open;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) {
      if (event.target.nodeName === "DIALOG") event.target.close();
      return;
    }
    if (button.dataset.do) svcq.act(button);
    if (button.dataset.opens) {
      open(button.dataset.opens, button.dataset.fill && JSON.parse(button.dataset.fill));
    }
    if ("closes" in button.dataset) button.closest("dialog").close();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.send) return;
    event.preventDefault();
    send(event.target);
  });

  // The next runs of a schedule that is being written

  let asked = 0;
  const preview = async (form) => {
    const list = form.querySelector("[data-preview]");
    const turn = ++asked;
    const { name, command, queue, cwd, missed, overlap, ...said } = shapes.schedule(filled(form));
    const items = [];
    try {
      if (!(said.cron || said.every || said.at)) throw new Error("Write when it is to run.");
      const query = new URLSearchParams({ ...said, n: 10 });
      for (const at of (await svcq.call(`GET ${list.dataset.preview}?${query}`)).times) {
        const item = document.createElement("li");
        for (const style of ["full", "ago"]) {
          const time = document.createElement("time");
          time.dateTime = at;
          time.dataset.style = style;
          item.append(time);
        }
        items.push(item);
      }
    } catch (error) {
      const item = document.createElement("li");
      item.className = "soft";
      item.textContent = error.message;
      items.push(item);
    }
    if (turn !== asked) return;
    list.replaceChildren(...items);
    svcq.tell(list);
  };
  let soon;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form");
    if (!form?.querySelector("[data-preview]")) return;
    const kinds = { cron: "0 3 * * *", every: "15m", at: "tomorrow 03:00" };
    if (event.target.name === "kind") form.elements.rule.placeholder = kinds[event.target.value];
    clearTimeout(soon);
    soon = setTimeout(() => preview(form), 250);
  });
})();
