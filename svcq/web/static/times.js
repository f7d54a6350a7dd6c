// Times in the reader's own zone and words; those that count are counted on every second.
"use strict";

const svcq = {};

(() => {
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

  svcq.span = (seconds) => {
    const whole = Math.max(Math.floor(seconds), 0);
    const first = units.findIndex(([, size]) => whole >= size);
    if (first < 0) return "0s";
    const [unit, size] = units[first];
    const rest = units[first + 1];
    const more = rest && Math.floor((whole % size) / rest[1]);
    return `${Math.floor(whole / size)}${unit}${more ? ` ${more}${rest[0]}` : ""}`;
  };

  const words = (at, style, now) => {
    const seconds = (now - at) / 1000;
    if (style === "full") return full.format(at);
    if (style === "span") return svcq.span(seconds);
    if (Math.abs(seconds) < 1) return "now";
    return seconds > 0 ? `${svcq.span(seconds)} ago` : `in ${svcq.span(-seconds)}`;
  };

  svcq.tell = (root = document) => {
    const now = Date.now();
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = Date.parse(time.dateTime);
      const text = words(at, time.dataset.style, now);
      if (time.textContent !== text) time.textContent = text;
      if (!time.title) time.title = full.format(at);
    }
    for (const zone of root.querySelectorAll("input[data-zone]:not([value])")) {
      zone.setAttribute("value", Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
    }
  };

  svcq.tell();
  setInterval(svcq.tell, 1000);
  document.addEventListener("htmx:afterSwap", () => svcq.tell());
})();
