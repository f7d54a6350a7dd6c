// Activity, minute by minute.
"use strict";

(() => {
  const FAILURES = ["failed", "timed_out", "rejected", "lost"];
  const drawn = new Map();
  // Steps of an axis that counts jobs.
  const WHOLE = [1, 10, 100, 1000, 1e4, 1e5, 1e6].flatMap((n) => [n, 2 * n, 5 * n]);

  const colour = (name) => {
    // A variable holds both colours of a theme; only a computed property is one of them.
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const faded = (rgb, part) => rgb.replace("rgb(", "rgba(").replace(")", `, ${part})`);

  const series = (minutes, activity) => {
    const now = Math.floor(Date.now() / 60000);
    const times = Array.from({ length: minutes }, (_, i) => (now - minutes + 1 + i) * 60);
    const index = new Map(times.map((time, i) => [time, i]));
    const [added, completed, failed] = [0, 1, 2].map(() => new Array(minutes).fill(0));
    for (const one of activity) {
      const at = index.get(Math.floor(Date.parse(one.minute) / 60000) * 60);
      if (at === undefined) continue;
      added[at] += one.counts.added ?? 0;
      completed[at] += one.counts.completed ?? 0;
      for (const kind of FAILURES) failed[at] += one.counts[kind] ?? 0;
    }
    return [times, added, completed, failed];
  };

  // The mean of all queues, minute by minute; a minute in which nothing did has none.
  const times = (minutes, activity) => {
    const [at] = series(minutes, []);
    const index = new Map(at.map((time, i) => [time, i]));
    const means = ["wait", "run"].map((kind) => {
      const [total, n] = [new Array(minutes).fill(0), new Array(minutes).fill(0)];
      for (const one of activity) {
        const i = index.get(Math.floor(Date.parse(one.minute) / 60000) * 60);
        if (i === undefined || !one[kind].n) continue;
        total[i] += one[kind].mean * one[kind].n;
        n[i] += one[kind].n;
      }
      return total.map((sum, i) => (n[i] ? sum / n[i] : null));
    });
    return [at, ...means];
  };

  const span = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)}ms` : svcq.span(seconds));
  const spans = (_, values) => values.map((value) => (value === 0 ? "0" : span(value)));

  const axisOf = () => ({ stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" });

  const timesOptions = (box) => {
    const value = (_, seconds) => (seconds === null ? "--" : span(seconds));
    const drawnAs = (label, ink) => ({ label, value, stroke: colour(ink), width: 1.5, spanGaps: false, points: { show: true, size: 5, fill: colour(ink), stroke: colour(ink) } });
    return {
      width: box.clientWidth - 24,
      height: 200,
      padding: [8, 24, 0, 0],
      cursor: { y: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 0.1)] } },
      axes: [axisOf(), { ...axisOf(), size: 56, values: spans }],
      series: [{}, drawnAs("waited", "plan"), drawnAs("ran", "run")],
    };
  };

  const options = (box, small) => {
    const axis = axisOf();
    const bars = uPlot.paths.bars({ size: [0.8, 18], radius: 0.25 });
    const steps = uPlot.paths.stepped({ align: 1 });
    const drawnAs = (name, paths, fill) => ({ label: name, stroke: colour(fill), fill: faded(colour(fill), paths === bars ? 0.85 : 0.12), width: paths === bars ? 0 : 1.5, paths, points: { show: false } });
    const many = Number(new URL(box.dataset.from, location).searchParams.get("minutes")) > 240;
    const shape = many ? steps : bars;
    return {
      width: box.clientWidth - 24,
      height: small ? 96 : 220,
      padding: [8, 24, 0, small ? 24 : 0],
      cursor: { show: !small, y: false },
      legend: { show: !small, live: true },
      scales: { y: { range: (_, low, high) => [0, Math.max(high, 4)] } },
      axes: small ? [{ ...axis, size: 22, space: 70 }, { show: false }] : [axis, { ...axis, size: 44, incrs: WHOLE }],
      series: [{}, { ...drawnAs("added", steps, "plan"), show: !small }, drawnAs("completed", shape, "good"), drawnAs("failed", shape, "bad")],
    };
  };

  const draw = async (box) => {
    let said;
    try {
      said = await svcq.call(`GET ${box.dataset.from}`);
    } catch {
      return; // the label of the stream tells that the service is away
    }
    const minutes = Number(new URL(box.dataset.from, location).searchParams.get("minutes"));
    drawn.get(box)?.destroy();
    if (!box.isConnected) return;
    const chart = box.dataset.chart === "times"
      ? new uPlot(timesOptions(box), times(minutes, said.minutes), box)
      : new uPlot(options(box, box.dataset.chart === "small"), series(minutes, said.minutes), box);
    drawn.set(box, chart);
  };
  const all = () => {
    for (const [box, chart] of drawn) {
      if (!box.isConnected) {
        chart.destroy();
        drawn.delete(box);
      }
    }
    document.querySelectorAll("[data-chart]").forEach(draw);
  };

  document.addEventListener("htmx:afterSwap", all);
  document.addEventListener("svcq:theme", all);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(all, 150);
  });
  all();
})();
