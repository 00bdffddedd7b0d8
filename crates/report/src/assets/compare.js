// The charts of `compare`: the trade-off, the timeline and the wake-up latencies.
//
// Everything is drawn from the JSON in #data and redrawn when the width or the colours change;
// the only state is the choice of policies, the zoom and the ticked latencies.
"use strict";

(() => {
  // Names come from strangers: what a terminal or the order of letters acts on is shown, as in the rest of the page.
  const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]/g;
  const shown = (text) => text.replace(acting, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
  const json = document.getElementById("data").textContent;
  const data = JSON.parse(json, (_, value) => (typeof value === "string" ? shown(value) : value));
  const { results, answer, reference, judged, replicas, goal, max_slowdown: limit } = data.comparison;
  const $ = (id) => document.getElementById(id);
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

  // Numbers, as the tables write them.

  const group = (text) => text.replace(/^-(?=[0.]*$)/, "").replace(/^-/, "−").replace(/^(−?\d{5,})/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, "\u202f"));
  const si = (value, unit, digits = 3) => {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return `0 ${unit}`;
    const power = clamp(Math.floor(Math.log10(Math.abs(value) * 1.0005) / 3), -3, 3);
    const scaled = value / 1000 ** power;
    const decimals = clamp(digits - 1 - Math.floor(Math.log10(Math.abs(scaled) * 1.0005)), 0, 3);
    return `${group(scaled.toFixed(decimals))} ${["n", "µ", "m", "", "k", "M", "G"][power + 3]}${unit}`;
  };
  const ghz = (khz) => (khz >= 1e6 ? `${(khz / 1e6).toFixed(1)} GHz` : `${Math.round(khz / 1e4) * 10} MHz`);

  // A time within a window: as many decimals as the window needs, no prefix that changes while one zooms.
  const clock = (s, span) => {
    const [factor, unit] = span < 2e-3 ? [1e6, "µs"] : span < 2 ? [1e3, "ms"] : [1, "s"];
    const decimals = clamp(2 - Math.floor(Math.log10(Math.max(span * factor, 1e-9) / 2)), 0, 6);
    return `${group((s * factor).toFixed(decimals))} ${unit}`;
  };

  // Round steps for an axis: 1, 2 or 5 times a power of ten.
  const ticks = (low, high, count) => {
    const raw = (high - low) / Math.max(1, count);
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= raw * 0.999);
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step);
    return out;
  };

  const svg = (name, attributes, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // The trade-off.

  const pen = document.createElement("canvas").getContext("2d");
  const measure = (text, font) => { pen.font = font; return pen.measureText(text).width; };
  // With both of its ends: names of one table often begin alike.
  const shorten = (text, most) => {
    if (text.length <= most) return text;
    const head = Math.floor((most - 1) / 2);
    return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
  };

  // Who is neither slower nor hungrier than another in both. Of equals the first stands for all.
  const pareto = (points) => {
    const front = [];
    for (const p of [...points].sort((a, b) => a.t - b.t || a.j - b.j)) {
      if (front.length === 0 || p.j < front.at(-1).j) front.push(p);
    }
    return front;
  };

  // What the axes show. Ratios are changes in per cent, so that the reference is where they cross.
  const percentOf = (i) => ({ median: (i.median - 1) * 100, low: (i.low - 1) * 100, high: (i.high - 1) * 100 });
  const just = (x) => ({ median: x, low: x, high: x });
  const timeAxis = {
    makespan: { name: "time for the work", short: "time", unit: "s", of: (u) => u.time, ratio: (u) => u.time_ratio },
    response: { name: "waiting for responses", short: "waiting", unit: "s", of: (u) => u.time, ratio: (u) => u.time_ratio },
    deadlines: { name: "deadlines missed, %", unit: "", of: (u) => ({ median: u.time.median * 100, low: u.time.low * 100, high: u.time.high * 100 }) },
  }[judged.kind];
  const charges = {
    ratio: {
      x: timeAxis.ratio ? { name: `${timeAxis.name} against the reference, %`, short: `${timeAxis.short} against the reference, %`, unit: "", sign: true } : timeAxis,
      y: { name: "energy against the reference, %", unit: "", sign: true },
      t: (r) => (timeAxis.ratio ? percentOf(timeAxis.ratio(r.uncertain)) : timeAxis.of(r.uncertain)),
      j: (r) => percentOf(goal === "own-energy" ? r.uncertain.own_energy_ratio : r.uncertain.energy_ratio), intervals: replicas > 0,
    },
    window: { x: timeAxis, y: { name: "energy", unit: "J" }, t: (r) => timeAxis.of(r.uncertain), j: (r) => r.uncertain.energy_j, intervals: replicas > 0 },
    own: { x: { name: judged.kind === "makespan" ? "time for the work" : "time of the run", unit: "s" }, y: { name: "energy", unit: "J" }, t: (r) => just(r.elapsed_s), j: (r) => just(r.energy_j), intervals: false },
  };
  // Energy over a longer time than the window is not compared with that of the others.
  const longer = new Set(data.longer);
  const notJudged = new Set(data.not_judged);
  const overOwnTime = (p, charge) => charge !== charges.own && longer.has(p.r.policy);
  const sane = (i) => [i.median, i.low, i.high].every(Number.isFinite);

  // Far from all that may be chosen, a policy would press them into one dot: it is named below instead.
  const REACH = 3;
  const inSight = (all) => {
    const mayBe = (p) => p.r.admissible && !notJudged.has(p.r.policy);
    const near = all.filter(mayBe);
    if (near.length < 2) return () => true;
    const bounds = ["t", "j"].map((key) => {
      const values = near.map((p) => p[key]);
      const low = Math.min(...values), high = Math.max(...values);
      const room = Math.max(high - low, limit === null ? 0 : limit * 100, 2) * REACH;
      return [low - room, high + room];
    });
    const within = (v, [low, high]) => v >= low && v <= high;
    return (p) => mayBe(p) || (within(p.t, bounds[0]) && within(p.j, bounds[1]));
  };

  // Where everything goes: the points, the axes' ends, and from values to pixels.
  const layout = (host, charge) => {
    const all = results.map((r) => ({ r, ti: charge.t(r), ji: charge.j(r), best: r.policy === answer.recommended, tied: answer.tied.includes(r.policy) }))
      .filter((p) => sane(p.ti) && sane(p.ji)).map((p) => ({ ...p, t: p.ti.median, j: p.ji.median }));
    // A share of energy over another time says nothing: such points are left out of the relative chart.
    const comparable = charge.y.sign ? all.filter((p) => !overOwnTime(p, charge)) : all;
    const points = charge.x.sign ? comparable.filter(inSight(comparable)) : comparable;
    const hidden = comparable.filter((p) => !points.includes(p));
    const apart = all.filter((p) => overOwnTime(p, charge));
    const width = host.clientWidth;
    const height = clamp(width * 0.45, 320, 460);
    const left = 62, right = width - 16, top = 14, bottom = height - 44;
    // All of the dots; of the lines what keeps the dots apart, the rest is cut at the edge.
    const span = (key) => {
      const values = points.map((p) => p[key]), ends = points.flatMap((p) => [p[`${key}i`].low, p[`${key}i`].high]);
      let low = Math.min(...values), high = Math.max(...values);
      const room = high - low;
      if (charge.intervals) {
        low = Math.max(Math.min(low, ...ends), low - room * 0.5);
        high = Math.min(Math.max(high, ...ends), high + room * 0.5);
      }
      const pad = (high - low) * 0.09 || Math.abs(high) * 0.1 || 1;
      return [low - pad < 0 && low >= 0 && charge.y.unit ? 0 : low - pad, high + pad];
    };
    const [t0, t1] = points.length ? span("t") : [0, 1];
    const [j0, j1] = points.length ? span("j") : [0, 1];
    const x = (t) => left + ((t - t0) / (t1 - t0)) * (right - left);
    const y = (j) => bottom - ((j - j0) / (j1 - j0)) * (bottom - top);
    const front = pareto(points.filter((p) => !overOwnTime(p, charge)));
    // The staircase: at any time, the least energy that a policy reached by then.
    const stairs = front.flatMap((p, i) => (i === 0 ? [[p.t, p.j]] : [[p.t, front[i - 1].j], [p.t, p.j]]));
    return { charge, points, hidden, apart, slow: slowArea({ charge, points, t1, left, right, top, bottom, x, y }), width, height, left, right, top, bottom, t0, t1, j0, j1, x, y, front, stairs };
  };

  // Beyond the limit of time, where the axis is the time that is limited, against the reference's; its name in a corner that no
  // point is in, if there is one.
  const slowArea = ({ charge, points, t1, left, right, top, bottom, x, y }) => {
    if (judged.kind !== "makespan" || !charge.x.sign || limit === null || limit * 100 >= t1) return null;
    const from = Math.max(left, x(limit * 100)), text = `over the limit of ${+(limit * 100).toPrecision(3)} %`;
    const wide = measure(text, `12px ${ink("sans")}`) + 8;
    const boxes = [[from + 2, top + 2], [from + 2, bottom - 20], [right - wide - 2, top + 2], [right - wide - 2, bottom - 20]]
      .map(([x0, y0]) => ({ x0, x1: x0 + wide, y0, y1: y0 + 18 }));
    const free = (b) => b.x0 >= from && b.x1 <= right && points.every((p) => x(p.t) + 9 < b.x0 || x(p.t) - 9 > b.x1 || y(p.j) + 9 < b.y0 || y(p.j) - 9 > b.y1);
    return { from, text, box: boxes.find(free) };
  };

  // Ticks share one unit, that of the greatest.
  const axis = (low, high, count, { name, unit, sign }) => {
    const at = ticks(low, high, count);
    const power = unit ? clamp(Math.floor(Math.log10(Math.max(Math.abs(high), 1e-9)) / 3), -3, 3) : 0;
    const step = (at[1] - at[0] || 1) / 1000 ** power;
    const decimals = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 6);
    const text = (v) => `${sign && v > step / 2 ? "+" : ""}${group((v / 1000 ** power + 0).toFixed(decimals)).replace(/^−(0(?:\.0*)?)$/, "$1")}`;
    return { at, text, name: unit ? `${name}, ${["n", "µ", "m", "", "k", "M", "G"][power + 3]}${unit}` : name };
  };

  const grid = (root, f) => {
    const { charge, left, right, top, bottom, x, y } = f;
    const across = f.width < 500 && charge.x.short ? { ...charge.x, name: charge.x.short } : charge.x;
    const xs = axis(f.t0, f.t1, f.width / 80, across), ys = axis(f.j0, f.j1, f.height / 60, charge.y);
    if (f.slow) {
      root.append(svg("rect", { class: "too-slow", x: f.slow.from, y: top, width: right - f.slow.from, height: bottom - top }));
      if (f.slow.box) root.append(svg("text", { x: f.slow.box.x0 + 4, y: f.slow.box.y1 - 5 }, f.slow.text));
    }
    for (const t of xs.at) {
      root.append(svg("line", { class: charge.x.sign && Math.abs(t) < 1e-9 ? "zero" : "axis", x1: x(t), x2: x(t), y1: top, y2: bottom }),
        svg("text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, xs.text(t)));
    }
    for (const j of ys.at) {
      root.append(svg("line", { class: charge.y.sign && Math.abs(j) < 1e-9 ? "zero" : "axis", x1: left, x2: right, y1: y(j), y2: y(j) }),
        svg("text", { x: left - 8, y: y(j) + 4, "text-anchor": "end" }, ys.text(j)));
    }
    root.append(svg("text", { x: (left + right) / 2, y: f.height - 6, "text-anchor": "middle" }, xs.name),
      svg("text", { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, ys.name));
  };

  const frontier = (root, { right, top, x, y, front, stairs }) => {
    if (front.length === 0) return;
    const line = stairs.map(([t, j]) => `${x(t)},${y(j)}`).join(" ");
    const first = front[0], last = front.at(-1);
    root.append(
      svg("polygon", { class: "dominated", points: `${x(first.t)},${top} ${line} ${right},${y(last.j)} ${right},${top}` }),
      svg("polyline", { class: "front reach", points: `${x(first.t)},${top} ${x(first.t)},${y(first.j)}` }),
      svg("polyline", { class: "front reach", points: `${x(last.t)},${y(last.j)} ${right},${y(last.j)}` }),
      svg("polyline", { class: "front", points: line }));
  };

  // Where 90 of 100 replicas lie, each way.
  const crosses = (root, { charge, points, left, right, top, bottom, x, y }) => {
    if (!charge.intervals) return;
    const inX = (t) => clamp(x(t), left, right), inY = (j) => clamp(y(j), top, bottom);
    for (const p of points) {
      const look = { class: p.best ? "range best" : "range" };
      root.append(svg("line", { ...look, x1: inX(p.ti.low), x2: inX(p.ti.high), y1: y(p.j), y2: y(p.j) }),
        svg("line", { ...look, x1: x(p.t), x2: x(p.t), y1: inY(p.ji.low), y2: inY(p.ji.high) }));
    }
  };

  // Labels: the best first, then the front, then the rest; each takes the first free place
  // around its point, near ones before far ones, with a clear line to it if there is one. One that
  // finds none is left to the tip, as are all but the best, the front and the reference where theirs would be far or the picture is narrow.
  const name = (root, { points, width, left, bottom, x, y, front, stairs, slow }) => {
    const taken = points.map((p) => ({ x0: x(p.t) - 8, x1: x(p.t) + 8, y0: y(p.j) - 8, y1: y(p.j) + 8 }));
    if (slow?.box) taken.push(slow.box);
    // The front itself is not to strike names through.
    for (const [i, [t, j]] of stairs.entries()) {
      const [u, k] = stairs[i - 1] ?? [t, j];
      taken.push({ x0: Math.min(x(t), x(u)) - 2, x1: Math.max(x(t), x(u)) + 2, y0: Math.min(y(j), y(k)) - 1, y1: Math.max(y(j), y(k)) + 1 });
    }
    const free = (b) => b.x0 >= left + 2 && b.x1 <= width - 2 && b.y0 >= 2 && b.y1 <= bottom - 2
      && taken.every((o) => b.x1 <= o.x0 || b.x0 >= o.x1 || b.y1 <= o.y0 || b.y0 >= o.y1);
    // Whether the line from a point to its label would run through something else.
    const through = (p, ax, ay) => [0.3, 0.45, 0.6, 0.75, 0.9].some((k) => {
      const lx = x(p.t) + (ax - x(p.t)) * k, ly = y(p.j) + (ay - y(p.j)) * k;
      return taken.some((o) => lx > o.x0 && lx < o.x1 && ly > o.y0 && ly < o.y1
        && !(x(p.t) > o.x0 && x(p.t) < o.x1 && y(p.j) > o.y0 && y(p.j) < o.y1));
    });
    const labels = svg("g", { "aria-hidden": "true" });
    const rank = (p) => (p.best ? 0 : front.includes(p) || p.r.policy === reference ? 1 : 2);
    for (const p of [...points].sort((a, b) => rank(a) - rank(b))) {
      const text = shorten(p.r.policy, width < 500 ? 18 : 30);
      const wide = measure(text, `${p.best ? "700 " : ""}12px ${ink("mono")}`) + 4;
      const seats = places.map(([far, dx, dy]) => {
        const ax = x(p.t) + far * dx, ay = y(p.j) + far * dy;
        const x0 = dx > 0.1 ? ax : dx < -0.1 ? ax - wide : ax - wide / 2;
        return { far, dx, dy, ax, ay, box: { x0, x1: x0 + wide, y0: ay - 8, y1: ay + 8 } };
      }).filter((seat) => free(seat.box));
      const seat = seats.find((s) => s.far < 12 || !through(p, s.ax, s.ay)) ?? seats[0];
      if (!seat || (rank(p) === 2 && (width < 500 || seat.far > 40))) continue;
      const { far, dx, dy, ax, ay, box } = seat;
      taken.push(box);
      if (far > 12) labels.append(svg("line", { class: "leader", x1: x(p.t), y1: y(p.j), x2: ax - dx * 2, y2: ay - dy * 2 }));
      labels.append(svg("text", { class: p.best ? "label best" : "label", x: box.x0 + 2, y: ay + 4 }, text));
    }
    root.append(labels);
  };
  const places = [];
  for (const far of [11, 24, 40, 60, 84, 112, 144]) {
    for (const angle of [0, 180, -30, 30, -150, 150, -90, 90, -60, 60, -120, 120, -75, -105, -45, -135]) {
      places.push([far, Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)]);
    }
  }

  const marks = (root, { charge, points, x, y, front }) => {
    const said = (i, { unit, sign }) => {
      const one = (v) => (unit ? si(v, unit) : `${sign && v > 0 ? "+" : ""}${group(v.toFixed(sign ? 1 : 2))}`);
      return charge.intervals && i.low !== i.high ? `${one(i.median)} (${one(i.low)} to ${one(i.high)})` : one(i.median);
    };
    for (const p of [...points].reverse()) {
      const on = front.includes(p);
      const standing = [p.r.policy === reference && "the reference", p.best && "recommended", p.tied && "not told apart from the recommended",
        !p.r.admissible && "over the time limit", notJudged.has(p.r.policy) && "dropped early: the time limit was not judged", overOwnTime(p, charge) ? "its energy is over a longer time of its own" : on ? "on the Pareto front" : "another is faster and lower in energy"].filter(Boolean);
      const says = `${p.r.policy}\n${charge.y.name}: ${said(p.ji, charge.y)}\n${charge.x.name}: ${said(p.ti, charge.x)}\n${standing.join("; ")}`;
      const mark = p.best
        ? svg("path", { class: "dot best", d: star(x(p.t), y(p.j), 10) })
        : svg("circle", { class: `dot${on ? " on-front" : ""}${p.tied ? " tied" : ""}${p.r.admissible ? "" : " out"}`, cx: x(p.t), cy: y(p.j), r: 6 });
      root.append(svg("g", { class: "point", tabindex: "0", role: "img", "aria-label": says, "data-tip": says }, mark,
        svg("circle", { cx: x(p.t), cy: y(p.j), r: 13, fill: "transparent" })));
    }
  };

  const scatter = () => {
    const host = $("scatter");
    const charge = charges[document.querySelector("input[name=charge]:checked").value];
    const f = layout(host, charge);
    const root = svg("svg", { viewBox: `0 0 ${f.width} ${f.height}`, width: f.width, height: f.height, role: "group", "aria-label": "Energy against time, a point a policy; the figures are in the table of policies" });
    for (const part of [grid, frontier, crosses, name, marks]) part(root, f);
    host.replaceChildren(root);
    scatterKey(f);
    $("tradeoff-note").textContent = "Lower left is better. The line joins the policies that no other one beats in both energy and time (the Pareto front)."
      + (charge.intervals ? " A cross shows where 90 % of the replicas lie, each way." : " No intervals: one run of the nominal model.");
    const signed = (v) => `${v > 0 ? "+" : ""}${group(v.toFixed(0))}\u00a0%`;
    const apart = f.apart.map((p) => p.r.policy);
    const far = f.hidden.map((p) => `${p.r.policy} (${judged.kind === "response" ? "waiting" : "time"} ${signed(p.t)}, energy ${signed(p.j)})`);
    $("front").textContent = [
      f.front.length > 0 && `On the front: ${f.front.map((p) => p.r.policy).join(", ")}.`,
      apart.length > 0 && (charge.y.sign
        ? `Not shown, since they did not finish within the window: ${apart.join(", ")}.`
        : `Not on it, since they did not finish within the window and their energy is over a longer time: ${apart.join(", ")}.`),
      far.length > 0 && `Too far off to be shown: ${far.join(", ")}.`,
    ].filter(Boolean).join(" ");
  };

  // What the marks are, of those that are there.
  const scatterKey = ({ charge, points, front, slow }) => {
    const mark = (className) => svg("svg", { width: 18, height: 16, "aria-hidden": "true" },
      className === "dot best" ? svg("path", { class: className, d: star(9, 8, 7.5) }) : svg("circle", { class: className, cx: 9, cy: 8, r: 5.5 }));
    const area = (className) => svg("svg", { width: 18, height: 16, "aria-hidden": "true" }, svg("rect", { class: className, x: 1, y: 2, width: 16, height: 12, stroke: "var(--line)" }));
    const plain = (p) => !p.best && !p.tied && p.r.admissible;
    const entries = [
      [points.some((p) => p.best), mark("dot best"), "recommended"],
      [points.some((p) => p.tied && !p.best), mark("dot tied"), "no clear difference from it"],
      [points.some((p) => plain(p) && front.includes(p)), mark("dot on-front"), "on the Pareto front"],
      [points.some((p) => plain(p) && !front.includes(p)), mark("dot"), "another is better in both"],
      [points.some((p) => !p.r.admissible && !front.includes(p)), mark("dot out"), "over the time limit"],
      [points.some((p) => !p.r.admissible && front.includes(p)), mark("dot on-front out"), "over the time limit, on the front"],
      [front.length > 0, area("dominated"), "here others are better in both"],
      [slow, area("too-slow"), slow?.text],
      [charge.intervals, svg("svg", { width: 18, height: 16, "aria-hidden": "true" }, svg("path", { class: "range", d: "M1 8H17M9 1V15" })), "90 % of the replicas"],
    ];
    $("scatter-key").replaceChildren(...entries.filter(([there]) => there).map(([, picture, text]) => {
      const item = document.createElement("li");
      item.append(picture, text);
      return item;
    }));
  };

  const star = (x, y, r) => {
    const corner = (i) => {
      const angle = (i * Math.PI) / 5 - Math.PI / 2, far = i % 2 ? r * 0.45 : r;
      return `${(x + far * Math.cos(angle)).toFixed(1)} ${(y + far * Math.sin(angle)).toFixed(1)}`;
    };
    return `M${Array.from({ length: 10 }, (_, i) => corner(i)).join("L")}Z`;
  };

  // Arrays as data.rs packs them.

  const bytes = (at) => Uint8Array.from(atob(data.pool[at]), (c) => c.charCodeAt(0));
  const opened = new Map();
  const open = (detail) => {
    if (!opened.has(detail)) {
      const words = new DataView(bytes(detail.power).buffer);
      opened.set(detail, {
        bin_s: detail.bin_ns / 1e9,
        lane_bin_s: detail.lane_bin_ns / 1e9,
        power: Array.from({ length: detail.bins }, (_, i) => (words.getUint16(2 * i, true) / 65535) * detail.power_max_w),
        lanes: detail.lanes.map(([khz, awake, depth]) => ({ khz: bytes(khz), awake: bytes(awake), depth: bytes(depth) })),
      });
    }
    return opened.get(detail);
  };
  const NEVER_IDLE = 255;
  const depthOf = (byte) => (byte / 254) * data.depth_max;

  // Names of the idle states, shallowest first, as the bars colour them.
  const states = [];
  for (const r of results) {
    for (const name of [...r.idle_residency.map((i) => i.state), ...r.window_split_j.idle_j.map(([n]) => n)]) {
      if (!states.includes(name)) states.push(name);
    }
  }
  const shade = (i) => (states.length < 2 ? 3 : Math.ceil(Math.floor((i * 10) / (states.length - 1)) / 2));

  // The timeline.

  // The style sheet writes the colours of strips as #rrggbb.
  const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const mix = (a, b, share) => a.map((v, i) => v + (b[i] - v) * share);

  const timeline = (() => {
    const host = $("lanes");
    const details = data.details.filter((d) => d.bins > 0);
    if (!host || details.length === 0) return null;
    const length = (d) => (d.bins * d.bin_ns) / 1e9;
    // The longer of the runs shown, and the least that zooming shows: a few bins.
    let end = 0, least = 0;
    const greatest = Math.max(...details.map((d) => d.power_max_w));
    const lowest = Math.min(...results.flatMap((r) => r.speed_residency.map((s) => s.khz)), data.khz_max);
    let charts = [];
    let range = [0, 0];
    let lane = 0;
    let passing = false;

    const pick = [$("policy-a"), $("policy-b")];
    pick[1].append(new Option("nothing", ""));
    for (const d of details) pick.forEach((s) => s.append(new Option(d.policy, d.policy)));
    pick[0].value = details.find((d) => d.policy === answer.recommended)?.policy ?? details[0].policy;
    pick[1].value = details.find((d) => d.policy !== pick[0].value)?.policy ?? "";
    for (const s of pick) s.addEventListener("change", () => draw());

    // All charts show one range; whichever was zoomed tells the others.
    const zoom = (low, high) => {
      const width = clamp(high - low, least, end);
      low = clamp(low, 0, end - width);
      range = [low, low + width];
      passing = true;
      for (const c of charts) c.setScale("x", { min: range[0], max: range[1] });
      passing = false;
      $("range").textContent = `${clock(range[0], width)} to ${clock(range[1], width)}`;
    };
    const hooks = () => ({
      setScale: [(u, key) => {
        const { min, max } = u.scales.x;
        // Queued: uPlot is amid its own commit here.
        if (key === "x" && !passing && min != null && (min !== range[0] || max !== range[1])) queueMicrotask(() => zoom(min, max));
      }],
      setCursor: [(u) => {
        if (u.cursor.event == null) return;
        if (u.lanes && u.cursor.top >= 0) lane = clamp(Math.floor(u.posToVal(u.cursor.top, "y")), 0, u.lanes - 1);
        const at = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null;
        for (const say of readouts) say(at);
      }],
    });
    let readouts = [];

    const common = (width, height) => ({
      width, height, legend: { show: false }, padding: [6, 10, 0, 0],
      cursor: {
        y: false, points: { show: false }, drag: { x: true, y: false, dist: 4 },
        sync: { key: "wattwise", scales: ["x", null], setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        bind: { dblclick: () => () => { zoom(0, end); return null; } },
      },
      scales: { x: { time: false } },
      hooks: hooks(),
    });
    const gutter = () => (host.clientWidth < 500 ? 40 : 52);
    const axes = (xShown) => [
      {
        show: xShown, stroke: ink("soft"), font: `11px ${ink("sans")}`, grid: { stroke: ink("line"), width: 1 }, ticks: { stroke: ink("line"), width: 1 }, size: 28, space: 80,
        values: (u, at) => at.map((v) => clock(v, u.scales.x.max - u.scales.x.min)),
      },
      { stroke: ink("soft"), font: `11px ${ink("sans")}`, grid: { stroke: ink("line"), width: 1 }, ticks: { show: false }, size: gutter(), gap: 6 },
    ];

    const power = (into, t, width) => {
      const xs = t.power.map((_, i) => i * t.bin_s);
      xs.push(t.power.length * t.bin_s);
      const options = common(width, 170);
      options.scales.y = { range: [0, greatest * 1.06 || 1] };
      options.axes = axes(true);
      options.axes[1].values = (_, at) => at.map((v) => `${+v.toPrecision(6)} W`);
      options.series = [{}, { stroke: ink("accent"), width: 1.25, fill: ink("accent-wash"), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }];
      return new uPlot(options, [xs, [...t.power, t.power.at(-1)]], into);
    };

    // Room above a strip for half of the first row's name.
    const LABEL_ROOM = 8;

    // A strip: one row a CPU, painted bin by bin into a small picture that the canvas then
    // stretches. `paint` gives a bin's colour, and where part of the bin differs that part's share
    // and colour: it fills the row from below. Where bins are narrower than pixels, a pixel shows
    // their mean.
    const strip = (into, t, width, rowHeight, xShown, paint) => {
      const count = t.lanes.length;
      const options = common(width, count * rowHeight + LABEL_ROOM + (xShown ? 34 : 6));
      options.padding = [LABEL_ROOM, 10, xShown ? 0 : 6, 0];
      options.scales.y = { range: [0, count], dir: -1 };
      options.axes = axes(xShown);
      options.axes[0].grid = { show: false };
      Object.assign(options.axes[1], {
        grid: { show: false },
        splits: () => {
          const every = Math.max(1, Math.ceil(13 / rowHeight));
          return Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every + 0.5);
        },
        values: (_, at) => at.map((v) => `cpu${Math.floor(v)}`),
      });
      options.series = [{}, { show: true, stroke: "transparent", points: { show: false } }];
      options.hooks.drawAxes = [(u) => {
        const { left, top, width: wide, height } = u.bbox;
        const { min, max } = u.scales.x;
        const bins = t.lanes[0].khz.length;
        const from = clamp(Math.floor(min / t.lane_bin_s), 0, bins), to = clamp(Math.ceil(max / t.lane_bin_s), 0, bins);
        if (to <= from) return;
        const merge = Math.max(1, Math.floor((to - from) / wide));
        const columns = Math.ceil((to - from) / merge);
        const levels = rowHeight;
        const picture = new OffscreenCanvas(columns, count * levels);
        const image = new ImageData(columns, count * levels);
        t.lanes.forEach((cpu, row) => {
          for (let c = 0; c < columns; c++) {
            const { colour, part = 0, other } = paint(cpu, from + c * merge, Math.min(from + (c + 1) * merge, to));
            const full = Math.round((1 - part) * levels);
            for (let level = 0; level < levels; level++) {
              const [r, g, b] = level < full ? colour : other;
              image.data.set([r, g, b, 255], 4 * ((row * levels + level) * columns + c));
            }
          }
        });
        picture.getContext("2d").putImageData(image, 0, 0);
        const x0 = u.valToPos(from * t.lane_bin_s, "x", true);
        const x1 = u.valToPos((from + columns * merge) * t.lane_bin_s, "x", true);
        const ctx = u.ctx;
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, top, wide, height);
        ctx.clip();
        ctx.imageSmoothingEnabled = false;
        ctx.drawImage(picture, x0, top, x1 - x0, height);
        // A hair between rows, where there is room for one.
        if (rowHeight >= 8) {
          ctx.fillStyle = ink("card");
          for (let i = 1; i < count; i++) ctx.fillRect(left, Math.round(top + (i * height) / count) - 1, wide, 2);
        }
        ctx.restore();
      }];
      const chart = new uPlot(options, [[0, end], [0, 0]], into);
      chart.lanes = count;
      return chart;
    };

    const painters = () => {
      const slow = rgb(ink("slow")), fast = rgb(ink("fast")), busy = rgb(ink("busy"));
      const depths = Array.from({ length: 6 }, (_, i) => rgb(ink(`idle-${i}`)));
      const asleep = rgb(ink("wash"));
      const floor = (lowest / (data.khz_max || 1)) * 255;
      // Pictures have few shades and many pixels.
      const speeds = Array.from({ length: 256 }, (_, b) => mix(slow, fast, clamp((b - floor) / (255 - floor || 1), 0, 1)));
      const sleeps = Array.from({ length: 255 }, (_, b) => {
        const d = depthOf(b), low = Math.floor(d);
        const colour = (i) => depths[shade(Math.min(i, Math.max(0, states.length - 1)))];
        return mix(colour(low), colour(low + 1), d - low);
      });
      const mean = (array, from, to) => {
        let sum = 0;
        for (let i = from; i < to; i++) sum += array[i];
        return sum / (to - from);
      };
      return {
        // A CPU that sleeps has its domain's speed and does not run at it.
        speed: (cpu, from, to) => {
          const awake = mean(cpu.awake, from, to) / 255;
          return { colour: mix(asleep, speeds[Math.round(mean(cpu.khz, from, to))], awake === 0 ? 0.2 : Math.max(0.5, awake)) };
        },
        state: (cpu, from, to) => {
          let depth = 0, slept = 0, asleep = 0;
          for (let i = from; i < to; i++) {
            const idle = 255 - cpu.awake[i];
            asleep += idle;
            if (cpu.depth[i] !== NEVER_IDLE) { depth += cpu.depth[i] * idle; slept += idle; }
          }
          if (slept === 0) return { colour: busy };
          return { colour: sleeps[Math.round(depth / slept)], part: 1 - asleep / (255 * (to - from)), other: busy };
        },
      };
    };

    const column = (policy, paint) => {
      const detail = details.find((d) => d.policy === policy);
      const t = open(detail);
      const box = document.createElement("div");
      const line = (className, text) => {
        const p = document.createElement("p");
        p.className = className;
        p.textContent = text;
        return p;
      };
      const rowHeight = clamp(Math.floor(120 / Math.max(1, t.lanes.length)), 5, 26);
      const many = t.lanes.length * rowHeight > 320;
      const strips = (name) => {
        const s = document.createElement("div");
        s.className = many ? "strips many" : "strips";
        if (many) { s.tabIndex = 0; s.role = "region"; }
        s.ariaLabel = `${name} of each CPU under ${policy}`;
        return s;
      };
      const watts = document.createElement("div"), speeds = strips("Speed"), sleeps = strips("State"), says = line("readout", "");
      watts.role = "img";
      watts.ariaLabel = `Power over time under ${policy}; means are in the table of policies`;
      box.append(line("lane-title policy", policy), line("lane-name", "Power of the whole machine"), watts);
      if (t.lanes.length > 0) box.append(line("lane-name", "Speed set, pale while asleep"), speeds, line("lane-name", "Awake, or how deep asleep"), sleeps);
      box.append(says);
      host.append(box);
      return {
        fill: () => {
          const width = t.lanes.length > 0 ? speeds.clientWidth : box.clientWidth;
          charts.push(power(watts, t, width));
          if (t.lanes.length > 0) {
            charts.push(strip(speeds, t, width, rowHeight, false, paint.speed), strip(sleeps, t, width, rowHeight, !many, paint.state));
          }
          readouts.push((at) => {
            const bin = at === null ? -1 : Math.floor(at / t.bin_s), b = at === null ? -1 : Math.floor(at / t.lane_bin_s);
            if (bin < 0) says.textContent = "";
            else if (bin >= t.power.length) says.textContent = `${clock(at, range[1] - range[0])}: over`;
            else {
              const cpu = t.lanes[Math.min(lane, t.lanes.length - 1)];
              const state = () => {
                const d = cpu.depth[b];
                const name = states.length > 0 ? states[Math.min(states.length - 1, Math.round(depthOf(d)))] : `depth ${depthOf(d).toFixed(1)}`;
                return `cpu${Math.min(lane, t.lanes.length - 1)} ${ghz((cpu.khz[b] / 255) * data.khz_max)}, ${Math.round(cpu.awake[b] / 2.55)} % awake${d === NEVER_IDLE ? "" : `, else about ${name}`}`;
              };
              says.textContent = `${clock(at, range[1] - range[0])}: ${si(t.power[bin], "W")}${cpu ? ` · ${state()}` : ""}`;
            }
          });
        },
      };
    };

    const swatch = (colour, text) => {
      const item = document.createElement("li"), i = document.createElement("i");
      i.style.background = colour;
      item.append(i, text);
      return item;
    };
    const keys = () => {
      const speed = document.createElement("li"), ramp = document.createElement("i");
      ramp.className = "ramp";
      ramp.style.background = "linear-gradient(90deg, var(--slow), var(--fast))";
      speed.append(`Speed: ${ghz(lowest)}`, ramp, ghz(data.khz_max));
      $("key-speed").replaceChildren(...(details.some((d) => d.lanes.length > 0) ? [speed] : []));
      $("key-state").replaceChildren(...(details.some((d) => d.lanes.length > 0)
        ? [swatch("var(--busy)", "awake"), ...states.map((n, i) => swatch(`var(--idle-${shade(i)})`, n))] : []));
    };

    const draw = () => {
      for (const c of charts) c.destroy();
      charts = [];
      readouts = [];
      host.replaceChildren();
      const chosen = pick.map((s) => s.value).filter((p) => p !== "");
      const runs = details.filter((d) => chosen.includes(d.policy));
      const whole = range[0] === 0 && range[1] >= end;
      end = Math.max(...runs.map(length)) || 1;
      least = Math.min(end, (4 * runs[0].bin_ns) / 1e9);
      if (whole) range = [0, end];
      host.className = chosen.length > 1 ? "lanes two" : "lanes";
      const paint = painters();
      // Both columns stand before either is filled, so that widths are final.
      const columns = chosen.map((policy) => column(policy, paint));
      for (const c of columns) c.fill();
      zoom(...range);
      keys();
    };

    document.querySelector(".buttons").addEventListener("click", (e) => {
      const how = e.target.dataset.zoom;
      const [low, high] = range, width = high - low, middle = (low + high) / 2;
      if (how === "in") zoom(middle - width / 4, middle + width / 4);
      if (how === "out") zoom(middle - width, middle + width);
      if (how === "back") zoom(low - width / 2, high - width / 2);
      if (how === "on") zoom(low + width / 2, high + width / 2);
      if (how === "all") zoom(0, end);
    });
    return { draw, ranges: () => charts.map((c) => [c.scales.x.min, c.scales.x.max]), end: () => end };
  })();

  // Wake-up latencies.

  const wake = (() => {
    const host = $("ccdf");
    const details = data.details.filter((d) => d.wake_count.some((n) => n > 0));
    if (!host || details.length === 0) return null;
    // Eight colours that colour-blind readers tell apart, then the same with dashes.
    const looks = details.map((_, i) => ({ colour: `s${i % 8}`, dash: [[], [6, 3], [2, 3]][Math.floor(i / 8) % 3] }));
    // Shown at first: what the answer speaks of.
    const named = [answer.recommended, reference, ...answer.tied].slice(0, 6);
    const shown = new Set(details.filter((d) => named.includes(d.policy)));
    if (shown.size === 0) shown.add(details[0]);
    details.forEach((d, i) => {
      const label = document.createElement("label"), box = document.createElement("input"), chip = document.createElement("span");
      box.type = "checkbox";
      box.checked = shown.has(d);
      box.addEventListener("change", () => draw());
      const line = svg("svg", { width: 22, height: 8, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 2.5, style: `stroke:var(--${looks[i].colour})`, "stroke-dasharray": looks[i].dash.join(" ") || "none" }));
      chip.append(line, d.policy);
      label.append(box, chip);
      $("wake-policies").append(label);
    });

    let chart = null;
    const draw = () => {
      chart?.destroy();
      const boxes = [...$("wake-policies").querySelectorAll("input")];
      // uPlot wants one x for all: every slot that any of them has. The share that took longer
      // falls right after a slot.
      const grid = [...new Set(details.flatMap((d) => d.wake_ns.map((ns) => Math.max(1, ns))))].sort((a, b) => a - b);
      const curves = details.map((d) => {
        const total = d.wake_count.reduce((a, b) => a + b, 0);
        const at = new Map();
        d.wake_ns.forEach((ns, i) => at.set(Math.max(1, ns), (at.get(Math.max(1, ns)) ?? 0) + d.wake_count[i]));
        let left = total;
        return grid.map((ns) => {
          const share = left / total;
          left -= at.get(ns) ?? 0;
          return share > 0 ? share : null;
        });
      });
      const rarest = Math.min(...details.map((d) => 1 / d.wake_count.reduce((a, b) => a + b, 0)));
      const narrow = host.clientWidth < 500;
      const font = `11px ${ink("sans")}`;
      const axis = { stroke: ink("soft"), font, grid: { stroke: ink("line"), width: 1 }, ticks: { show: false } };
      const decade = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6;
      const share = (v) => `${+(v * 100).toPrecision(3)} %`;
      chart = new uPlot({
        width: host.clientWidth, height: narrow ? 280 : 340, legend: { show: false }, padding: [10, 14, 0, 0],
        cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, dist: 4 } },
        scales: {
          x: { time: false, distr: 3, range: (u, min, max) => [min ?? grid[0] / 1e9, Math.max(max ?? 1, (min ?? grid[0] / 1e9) * 2)] },
          y: { distr: 3, range: () => [rarest * 0.8, 1.15] },
        },
        axes: [
          { ...axis, size: 28, label: narrow ? "" : "time from runnable to running", labelFont: `12px ${ink("sans")}`, labelSize: narrow ? 0 : 18, values: (u, at) => at.map((v) => (decade(v) ? si(v, "s", 1) : "")), filter: (u, at) => at },
          { ...axis, size: narrow ? 56 : 64, label: narrow ? "" : "share that took longer", labelFont: `12px ${ink("sans")}`, labelSize: narrow ? 0 : 18, values: (u, at) => at.map((v) => (decade(v) ? share(v) : "")), filter: (u, at) => at },
        ],
        series: [{}, ...details.map((d, i) => ({
          label: d.policy, show: boxes[i].checked, stroke: ink(looks[i].colour), dash: looks[i].dash, width: 2,
          paths: uPlot.paths.stepped({ align: -1 }), points: { show: false },
        }))],
        hooks: {
          // No wake-up took longer than a curve's last point: from there it falls to 0, which a logarithmic axis does not have.
          draw: [(u) => {
            const { ctx, bbox } = u, foot = bbox.top + bbox.height;
            let end = null;
            ctx.save();
            curves.forEach((curve, i) => {
              if (!boxes[i].checked) return;
              const last = curve.findLastIndex((v) => v !== null);
              if (last < 0) return;
              const px = u.valToPos(grid[last] / 1e9, "x", true), py = u.valToPos(curve[last], "y", true);
              if (px < bbox.left || px > bbox.left + bbox.width) return;
              end = Math.max(end ?? 0, last);
              ctx.strokeStyle = ink(looks[i].colour);
              ctx.lineWidth = 2 * devicePixelRatio;
              ctx.setLineDash(looks[i].dash.map((d) => d * devicePixelRatio));
              ctx.beginPath();
              ctx.moveTo(px, Math.min(py, foot));
              ctx.lineTo(px, foot);
              ctx.stroke();
            });
            if (end !== null) {
              ctx.font = `${11 * devicePixelRatio}px ${ink("sans")}`;
              ctx.fillStyle = ink("soft");
              ctx.textAlign = "right";
              const px = u.valToPos(grid[end] / 1e9, "x", true);
              ctx.fillText(`longest: ${si(grid[end] / 1e9, "s")}`, px - 6 * devicePixelRatio, foot - 6 * devicePixelRatio);
            }
            ctx.restore();
          }],
          setCursor: [(u) => {
            const at = u.cursor.idx;
            $("wake-read").textContent = at == null ? "" : `Longer than ${si(grid[at] / 1e9, "s")}: ` + (details
              .map((d, i) => [d.policy, boxes[i].checked ? curves[i][at] : null]).filter(([, v]) => v != null)
              .map(([name, v]) => `${name} ${share(v)}`).join(" · ") || "none");
          }],
        },
      }, [grid.map((ns) => ns / 1e9), ...curves], host);
    };
    return { draw };
  })();

  // Drawing again when the room or the colours change.

  const draw = () => { scatter(); timeline?.draw(); wake?.draw(); };
  for (const radio of document.querySelectorAll("input[name=charge]")) radio.addEventListener("change", scatter);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  let width = $("scatter").clientWidth, waiting = 0;
  // The charts' own room, whatever it is that changes it; only its width, for a phone's address bar changes the height.
  new ResizeObserver(() => {
    if ($("scatter").clientWidth === width) return;
    width = $("scatter").clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 100);
  }).observe($("scatter"));
  draw();

  // For the console and for tests.
  globalThis.wattwiseReport = { data, ranges: () => timeline?.ranges() ?? [], end: () => timeline?.end() };
})();
