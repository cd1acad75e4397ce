"use strict";
// Pictures, drawn anew in the width that there is. What stands in them is text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element with attributes and children; strings become text. */
function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

/** Return a box in which `draw(width)` makes an SVG, again whenever its width changes. */
function chart(draw) {
  const box = h("div", { class: "chart" });
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (!width || width === last) return;
    last = width;
    const focused = [...box.querySelectorAll("[role=button]")].indexOf(document.activeElement);
    box.replaceChildren(draw(width));
    if (focused >= 0) box.querySelectorAll("[role=button]")[focused]?.focus();
    // What is wider than the page is scrolled by keys too.
    const wide = box.scrollWidth > box.clientWidth;
    if (wide) box.setAttribute("tabindex", "0"); else box.removeAttribute("tabindex");
    const middle = box.querySelector(".of");
    if (wide && middle) box.scrollLeft = middle.x.baseVal.value - width / 3;
  }).observe(box);
  return box;
}

function picture(width, height, label, ...children) {
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label }, ...children);
}

/** Let arrow keys move between marks, of which the Tab key reaches one; Enter picks. */
function rove(marks) {
  marks.forEach((mark, at) => {
    mark.setAttribute("tabindex", at ? -1 : 0);
    mark.setAttribute("role", "button");
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      let next = step ? at + step : { Home: 0, End: marks.length - 1 }[event.key];
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        mark.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      } else if (next !== undefined) {
        event.preventDefault();
        next = Math.max(0, Math.min(marks.length - 1, next));
        marks.forEach((one, place) => one.setAttribute("tabindex", place === next ? 0 : -1));
        marks[next].focus();
      }
    });
  });
  return marks;
}

function cut(text, most) {
  const signs = Array.from(text);
  return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : text;
}

function kindOf(reward) {
  return reward === null || reward === undefined ? "other" : reward > 0.5 ? "won" : "lost";
}

/** The same of a mean over many, which is only told where it is far from even. */
function leaning(mean) {
  return mean === null || Math.abs(mean - 0.5) < 0.1 ? "other" : kindOf(mean);
}

/** Bars over time, by outcome; a click narrows the time. */
function timelineChart({ bins }, when, pick) {
  return chart((width) => {
    const height = 110, foot = 18, top = 4;
    const most = Math.max(...bins.map((bin) => bin.won + bin.lost + bin.other));
    const each = width / bins.length;
    const marks = bins.flatMap((bin, at) => {
      const total = bin.won + bin.lost + bin.other;
      if (!total) return [];
      const label = `${when(bin.since)} to ${when(bin.until)}: ${total} events, ${bin.won} won, ${bin.lost} lost`;
      let below = height - foot;
      const parts = ["other", "lost", "won"].map((kind) => {
        const tall = bin[kind] ? Math.max(1.5, ((height - foot - top) * bin[kind]) / most) : 0;
        below -= tall;
        return s("rect", { class: `fill-${kind} shape`, x: at * each + 0.5, y: below, width: Math.max(1, each - 1), height: tall });
      });
      return [s("g", { "aria-label": label, onclick: () => pick(bin) }, s("title", {}, label), ...parts)];
    });
    const base = height - foot + 14;
    return picture(width, height, "Events over time, by outcome. Arrow keys move, Enter narrows the time.",
      ...rove(marks), s("line", { class: "axis", x1: 0, x2: width, y1: height - foot, y2: height - foot }),
      s("text", { class: "soft", x: 0, y: base }, when(bins[0].since)),
      s("text", { class: "soft", x: width, y: base, "text-anchor": "end" }, when(bins[bins.length - 1].until)));
  });
}

/** Regions as discs at their place in the plane, single memories as dots where there are few. */
function mapChart({ regions, points }, pick, open) {
  return chart((width) => {
    const height = Math.min(560, Math.max(300, width * 0.62)), edge = 34;
    const x = (one) => edge + ((one.x + 1) / 2) * (width - 2 * edge);
    const y = (one) => edge + ((1 - one.y) / 2) * (height - 2 * edge);
    const most = Math.max(1, ...regions.map((one) => one.events));
    const room = Math.min(1, width / 700) * Math.min(1, Math.sqrt(80 / regions.length));
    const radius = (one) => 4 + 26 * room * Math.sqrt(one.events / most);
    const dots = points.map((one) => s("circle", { class: `fill-${kindOf(one.reward)}`, cx: x(one), cy: y(one), r: 2.5,
      opacity: 0.7, onclick: () => open(one.id) }));
    const taken = [];
    const names = [];
    const marks = regions.map((one, at) => {
      const share = one.reward === null ? "no outcomes" : `mean outcome ${one.reward.toFixed(2)}`;
      const label = `${one.events} memories, ${share}: ${one.text}`;
      const spot = { x: x(one), y: y(one) - radius(one) - 4 };
      const free = taken.every((other) => Math.abs(other.x - spot.x) > 150 || Math.abs(other.y - spot.y) > 16);
      if (at < 14 && free) {
        taken.push(spot);
        const anchor = spot.x < 80 ? "start" : spot.x > width - 80 ? "end" : "middle";
        names.push(s("text", { class: "halo", x: anchor === "middle" ? spot.x : anchor === "start" ? 4 : width - 4, y: Math.max(12, spot.y),
          "text-anchor": anchor, "pointer-events": "none" }, cut(one.text, 24)));
      }
      return s("g", { "aria-label": label, onclick: () => pick(one) }, s("title", {}, label),
        s("circle", { class: `fill-${leaning(one.reward)} shape`, cx: x(one), cy: y(one), r: radius(one), opacity: points.length ? 0.28 : 0.6 }));
    });
    return picture(width, height, "Regions of the memory. Arrow keys move from the largest on, Enter lists its memories.",
      ...rove(marks), ...dots, ...names);
  });
}

function arrowHead(id) {
  return s("defs", {}, s("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse",
    markerUnits: "userSpaceOnUse" }, s("path", { class: "tip", d: "M0 0 8 4 0 8z" })));
}

/** Causes to the left of an event, consequences to the right, as boxes with arrows. */
function chainChart({ of, nodes, edges }, open) {
  return chart((room) => {
    const depths = [...new Set(nodes.map((node) => node.depth))].sort((a, b) => a - b);
    const gap = 46, wide = Math.max(150, Math.min(230, (room - 2) / depths.length - gap)), tall = 54;
    const places = new Map();
    let rows = 1;
    depths.forEach((depth, column) => {
      const here = nodes.filter((node) => node.depth === depth);
      rows = Math.max(rows, here.length);
      here.forEach((node, at) => places.set(node.id, { x: 1 + column * (wide + gap), at, of: here.length }));
    });
    const height = rows * (tall + 14) + 6, width = depths.length * (wide + gap) - gap + 2;
    for (const place of places.values()) place.y = ((place.at + 0.5) / place.of) * (height - 6) - tall / 2 + 3;
    const lines = edges.filter((edge) => places.has(edge.from) && places.has(edge.to)).map((edge) => {
      const a = places.get(edge.from), b = places.get(edge.to);
      const forward = a.x < b.x;
      const x1 = forward ? a.x + wide : a.x + wide / 2, x2 = forward ? b.x - 2 : b.x + wide / 2;
      const y1 = forward ? a.y + tall / 2 : a.y, y2 = forward ? b.y + tall / 2 : b.y + tall + 2;
      const bend = Math.max(20, Math.abs(x2 - x1) / 2);
      return s("path", { class: "flow", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
        "stroke-width": 1 + 2 * edge.weight, "stroke-dasharray": edge.probability === null ? null : "5 4", "marker-end": "url(#chain-tip)" });
    });
    const letters = Math.floor(wide / 7.6);
    const boxes = nodes.map((node) => {
      const { x, y } = places.get(node.id);
      const role = node.depth < 0 ? "cause" : node.depth ? "consequence" : "the event";
      const words = node.text;
      const space = words.lastIndexOf(" ", letters);
      const at = words.length <= letters ? words.length : space > 0 ? space : letters;
      return s("g", { "aria-label": `${role}: ${node.text}`, onclick: () => open(node.id) }, s("title", {}, node.text),
        s("rect", { class: `box shape${node.id === of ? " of" : ""}`, x, y, width: wide, height: tall, rx: 6 }),
        s("text", { x: x + 9, y: y + 22 }, words.slice(0, at)), s("text", { x: x + 9, y: y + 40 }, cut(words.slice(at).trim(), letters)));
    });
    return picture(width, height, "Causes and consequences. Arrow keys move, Enter opens.", arrowHead("chain-tip"), ...lines, ...rove(boxes));
  });
}

/** Curves with their names at their ends. */
function curveChart(curves) {
  return chart((width) => {
    const height = 250, left = 44, foot = 30, right = Math.min(230, width * 0.36), top = 10;
    const all = curves.flatMap((curve) => curve.points);
    const rate = curves.every((curve) => curve.unit === "episodes won");
    const low = rate ? 0 : Math.min(0, ...all.map((p) => p[1])), high = rate ? 1 : Math.max(...all.map((p) => p[1]), low + 1e-9);
    const last = Math.max(2, ...all.map((p) => p[0]));
    const x = (n) => left + ((n - 1) / (last - 1)) * (width - left - right);
    const y = (v) => top + (1 - (v - low) / (high - low)) * (height - top - foot);
    const value = (v) => (rate ? `${Math.round(100 * v)}%` : v.toPrecision(3));
    const grid = [low, (low + high) / 2, high].flatMap((v) => [
      s("line", { class: "axis", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
      s("text", { class: "soft", x: left - 6, y: y(v) + 4, "text-anchor": "end" }, value(v))]);
    const ends = curves.map((curve, k) => ({ k, curve, at: curve.points[curve.points.length - 1] }))
      .sort((a, b) => b.at[1] - a.at[1]);
    let below = top - 4;
    const names = ends.map(({ k, curve, at }) => {
      below = Math.max(y(at[1]) + 4, below + 15);
      return s("text", { class: `t${k % 7}`, x: x(at[0]) + 6 > width - right + 6 ? x(at[0]) + 6 : width - right + 6, y: below },
        cut(`${value(at[1])} ${curve.name}`, Math.floor(right / 7.4)));
    });
    const lines = curves.map((curve, k) => curve.points.length > 1
      ? s("polyline", { class: `line k${k % 7}`, points: curve.points.map(([n, v]) => `${x(n).toFixed(1)},${y(v).toFixed(1)}`).join(" ") })
      : s("circle", { class: `line k${k % 7}`, cx: x(curve.points[0][0]), cy: y(curve.points[0][1]), r: 3 }));
    const unit = rate ? "share of the last episodes that were won" : "mean return of the last episodes";
    return picture(width, height, `Learning curves: ${unit}. The table below has the same.`, ...grid, ...lines, ...names,
      s("text", { class: "soft", x: left, y: height - 8 }, `episodes, 1 to ${last}`));
  });
}

/** Regions of the decision process from the first step to the last, with the moves between them. */
function flowChart({ regions, moves }, pick) {
  return chart((room) => {
    const width = Math.max(room, 560), height = 380, edge = 40, end = 96;
    const places = new Map();
    const ordered = [...regions].sort((a, b) => a.when - b.when || a.id - b.id);
    const lanes = Math.min(5, ordered.length);
    ordered.forEach((one, at) => {
      const lane = lanes > 1 ? (2 * at) % lanes / (lanes - 1) : 0.5;
      const along = ordered.length > 1 ? at / (ordered.length - 1) : 0.5;
      places.set(one.id, { x: edge + along * (width - edge - end - 60), y: 44 + lane * (height - 90) });
    });
    places.set("success", { x: width - end, y: 70 });
    places.set("failure", { x: width - end, y: height - 70 });
    const most = Math.max(1, ...moves.map((move) => move.count));
    const size = (one) => 9 + 15 * Math.sqrt(one.moves / Math.max(...regions.map((r) => r.moves)));
    const lines = moves.filter((move) => places.has(move.to)).map((move) => {
      const a = places.get(move.from), b = places.get(move.to);
      const along = Math.hypot(b.x - a.x, b.y - a.y) || 1, back = typeof move.to === "string" ? 6 : 26;
      const x2 = b.x - ((b.x - a.x) / along) * back, y2 = b.y - ((b.y - a.y) / along) * back;
      const mx = (a.x + x2) / 2 - (y2 - a.y) * 0.12, my = (a.y + y2) / 2 + (x2 - a.x) * 0.12;
      const share = move.count / most;
      return s("path", { class: "flow", d: `M${a.x} ${a.y}Q${mx} ${my} ${x2} ${y2}`, "stroke-width": 0.6 + 4 * share,
        opacity: 0.25 + 0.65 * share, "marker-end": "url(#flow-tip)" });
    });
    const marks = regions.map((one) => {
      const { x, y } = places.get(one.id);
      const chance = `${Math.round(100 * one.quality)}%`;
      const label = `${one.text || "region " + one.id}: ${Math.round(one.moves)} moves, ${chance} success, best ${one.best[0] || "unknown"}`;
      return s("g", { "aria-label": label, onclick: () => pick(one) }, s("title", {}, label),
        s("circle", { class: `fill-${leaning(one.quality)} shape`, cx: x, cy: y, r: size(one) }),
        s("text", { class: "halo", x, y: y + size(one) + 14, "text-anchor": "middle", "pointer-events": "none" }, cut(one.best[0] || "", 18)),
        s("text", { class: "halo soft", x, y: y - size(one) - 5, "text-anchor": "middle", "pointer-events": "none" }, chance));
    });
    const ends = ["success", "failure"].map((name) => s("text", { class: name === "success" ? "t2" : "t1", x: width - end + 4, y: places.get(name).y + 4 }, name));
    return picture(width, height, "Regions of the decision process and the moves between them. Arrow keys move, Enter opens.",
      arrowHead("flow-tip"), ...lines, ...rove(marks), ...ends);
  });
}

/** A score as one bar, each factor a part of it; the table beside it has the numbers. */
function factorBar(factors, most) {
  const label = factors.map((one) => `${one.name} ${one.share.toFixed(3)}`).join(", ");
  const width = 240;
  let x = 0;
  const rects = factors.filter((one) => one.share > 0).map((one, k) => {
    const wide = (one.share / most) * width;
    const rect = s("rect", { class: `t${Math.min(k, 6)}`, x, y: 0, width: Math.max(0.5, wide - 1), height: 10 });
    x += wide;
    return rect;
  });
  const bar = s("svg", { width: "100%", height: 10, viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...rects);
  return bar;
}
