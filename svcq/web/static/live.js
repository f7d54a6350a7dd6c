// The page follows the store: one stream of changes; each view is drawn anew when something happened.
"use strict";

(() => {
  const label = document.getElementById("live");
  const PACE = 700; // milliseconds between two drawings, at the least
  let last = 0;
  let timer = null;
  let stale = false;

  const say = (state, text) => {
    label.dataset.state = state;
    label.textContent = text;
  };

  const busy = () => document.querySelector("dialog[open]");

  const draw = () => {
    timer = null;
    if (document.hidden || busy()) {
      stale = true;
      return;
    }
    stale = false;
    last = Date.now();
    svcq.changed();
  };
  const soon = () => {
    if (timer === null) timer = setTimeout(draw, Math.max(last + PACE - Date.now(), 60));
  };
  svcq.soon = soon;

  document.addEventListener("visibilitychange", () => stale && soon());
  document.addEventListener("close", () => stale && soon(), true);

  const listen = () => {
    const stream = new EventSource("/api/v1/stream");
    let open = false;
    stream.onopen = () => {
      say("live", "Live");
      if (open) soon();
      open = true;
    };
    for (const kind of ["changes", "reset"]) stream.addEventListener(kind, soon);
    stream.onerror = () => {
      say("away", "The service is away");
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
    };
    addEventListener("pagehide", () => stream.close());
  };
  listen();
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  setInterval(soon, 5000); // queues and workers, whose changes the stream of jobs does not tell

  // What scripts have filled (output, charts, dialogs) is left as it is when the view is drawn anew.
  // So is a field in which someone may be typing; ignoreActiveValue would leave the words of a button
  // that was just pressed as well.
  const typing = (old) => old === document.activeElement && old.matches("input, select, textarea");
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, anew) => {
    if (old instanceof Element && typing(old)) return false;
    if (!(old instanceof Element && "keep" in old.dataset)) return true;
    if (anew.dataset.from) old.dataset.from = anew.dataset.from;
    return false;
  };

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload();
  });
})();
