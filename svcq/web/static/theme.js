// Before the first paint: what the reader chose, if anything; the system's wish otherwise.
"use strict";

(() => {
  const root = document.documentElement;
  const order = ["", "light", "dark"];
  const show = (theme) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  show(localStorage.getItem("svcq-theme") || "");
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-next]")) return;
    const next = order[(order.indexOf(root.dataset.theme || "") + 1) % order.length];
    localStorage.setItem("svcq-theme", next);
    show(next);
    document.dispatchEvent(new Event("svcq:theme"));
    svcq.toast(`Theme: ${next || "as the system"}.`);
  });
})();
