"use strict";
// The page: asks for what a view needs, and draws it. What memories say only ever becomes text.

const VIEWS = { memories: "Memories", map: "Map", causes: "Causes", recall: "Recall", episodes: "Episodes", learning: "Learning" };
const data = document.getElementById("data");
const REPORT = data ? JSON.parse(data.textContent) : null;
const main = document.getElementById("main");
let token = "", about = null, drawn = 0;

// --- asking

class Refused extends Error {}

async function ask(name, asked = {}) {
  if (REPORT) return fromReport(name, asked);
  return answer(`api/${name}?${new URLSearchParams(asked)}`, {});
}

async function change(what) {
  return answer("api/change", { method: "POST", body: JSON.stringify(what), headers: { "Content-Type": "application/json" } });
}

async function answer(where, options) {
  let got;
  try {
    got = await fetch(where, { ...options, headers: { ...options.headers, "X-Cvx-Token": token } });
  } catch {
    throw new Refused("There is no connection to cvx inspect any more. Start it again and open the address that it prints; what is shown here stays.");
  }
  const told = await got.json();
  if (!got.ok) throw new Refused(told.error);
  return told;
}

/** Answer from what a report holds, in place of a server. */
function fromReport(name, asked) {
  const key = asked.id ?? asked.of ?? asked.decision;
  const kept = key === undefined ? REPORT[name] : REPORT[name][key];
  if (name === "event" && !kept) return REPORT.events.rows.find((row) => String(row.id) === key) ?? missing();
  if (!kept) missing();
  if (name === "events" || name === "episodes" || name === "decisions") return selected(kept, asked);
  if (name === "timeline" && Object.keys(asked).some((field) => field !== "state")) return counted(selected(REPORT.events, { ...asked, all: 1 }).rows);
  return kept;
}

function missing() {
  throw new Refused("This report does not hold that: cvx inspect shows all of the store.");
}

function selected(kept, asked) {
  const words = (asked.q || "").toLowerCase();
  const rows = kept.rows.filter((row) =>
    (row.text ?? row.goal ?? row.cue).toLowerCase().includes(words)
    && ["entity", "kind", "source", "namespace", "state", "task"].every((field) => asked[field] === undefined || row[field] === asked[field])
    && (!asked.tag || row.tags.includes(asked.tag))
    && (!asked.outcome || kindOf(row.reward) === (asked.outcome === "none" ? "other" : asked.outcome))
    && (asked.episode === undefined || String(row.episode) === asked.episode)
    && (asked.region === undefined || (REPORT.members[asked.region] || []).includes(row.id))
    && (!asked.since || row.time >= Number(asked.since)) && (!asked.until || row.time < Number(asked.until)));
  if (asked.all) return { rows };
  const page = Number(asked.page || 0), each = 50;
  return { ...kept, total: rows.length, page, pages: Math.ceil(rows.length / each), rows: rows.slice(page * each, (page + 1) * each) };
}

function counted(rows) {
  if (!rows.length) return { bins: [] };
  const times = rows.map((row) => row.time);
  const low = Math.min(...times), high = Math.max(...times), width = Math.max(1, Math.ceil((high - low + 1) / 60));
  const bins = [];
  for (let since = low; since <= high; since += width) bins.push({ since, until: since + width, won: 0, lost: 0, other: 0 });
  for (const row of rows) bins[Math.min(bins.length - 1, Math.floor((row.time - low) / width))][kindOf(row.reward)] += 1;
  return { bins, low, high };
}

// --- words

function when(time) {
  if (!about || about.clock !== "utc" || time < 1e14) return String(time);
  const date = new Date(time / 1000);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString().slice(0, 19).replace("T", " ");
}

/** Return what was typed as a time of the store's clock, "" where it is none. */
function timeOf(typed) {
  const words = typed.trim();
  if (/^-?\d{5,}$/.test(words) || (about.clock !== "utc" && /^-?\d+$/.test(words))) return words;
  const date = new Date(/^\d{4}-\d\d-\d\d$/.test(words) ? `${words}T00:00:00Z` : `${words.replace(" ", "T")}Z`);
  return Number.isNaN(date.getTime()) ? "" : String(date.getTime() * 1000);
}

function number(value, digits = 3) {
  return value === null || value === undefined ? "" : Number(value).toFixed(digits);
}

function percent(value) {
  return value === null || value === undefined ? "" : `${Math.round(100 * value)}%`;
}

function many(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

function ended(reward) {
  if (reward === null || reward === undefined) return "";
  const kind = kindOf(reward);
  return h("span", { class: kind }, `${kind === "won" ? "✓ won" : "✗ lost"} ${number(reward, 2)}`);
}

function link(view, asked, ...children) {
  return h("a", { href: `#/${view}?${new URLSearchParams(asked)}` }, ...children);
}

function said(text) {
  return h("span", { class: "text", dir: "auto" }, text);
}

function table(caption, heads, rows) {
  const words = (at) => (heads[at].endsWith(" ") ? "words" : null);
  return h("div", { class: "table", tabindex: "0", role: "group", "aria-label": caption }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((head, at) => h("th", { scope: "col", class: words(at) }, head.trim())))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: words(at), dir: words(at) ? "auto" : null }, cell)))))));
}

function asTable(caption, heads, rows) {
  return h("details", {}, h("summary", {}, "The same as a table"), table(caption, heads, rows));
}

function nothing(text) {
  return h("p", { class: "quiet" }, text);
}

// --- the frame

function tell(text) {
  document.getElementById("status").textContent = text;
}

function complain(error) {
  const place = document.getElementById("problem");
  if (!error) { place.replaceChildren(); return; }
  if (!(error instanceof Refused)) console.error(error);
  place.replaceChildren(h("p", {}, error.message), h("div", { class: "row" }, h("button", { onclick: () => show() }, "Try again"), needsToken(error)));
}

function needsToken(error) {
  if (!error.message.includes("token")) return null;
  const field = h("input", { id: "token", autocomplete: "off" });
  return h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); keep(field.value.trim()); about = null; show(); } },
    h("div", {}, h("label", { for: "token" }, "Token"), field), h("button", {}, "Use it"));
}

function keep(given) {
  token = given;
  try { sessionStorage.setItem("cvx-token", given); } catch { /* Kept for this page alone. */ }
}

function route() {
  const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  return { view: path || "memories", asked: Object.fromEntries(new URLSearchParams(query || "")) };
}

/** Draw the view that the address names; what was asked before and comes later is dropped. */
async function show({ focus = false } = {}) {
  const mine = ++drawn;
  const { view, asked } = route();
  try {
    about = about || (await firstLook());
    const draw = DRAW[view] || DRAW.memories;
    for (const one of document.querySelectorAll("#views a")) {
      if (one.dataset.view === (view === "event" ? "memories" : view === "episode" ? "episodes" : view)) one.setAttribute("aria-current", "page");
      else one.removeAttribute("aria-current");
    }
    const parts = await draw(asked, () => mine === drawn);
    if (mine !== drawn) return;
    main.replaceChildren(...parts);
    complain(null);
    document.title = `cvx: ${VIEWS[view] || view} of ${about.store}`;
    if (focus) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
  } catch (error) {
    if (mine === drawn) complain(error);
  }
  if (main.dataset.ready === undefined) main.dataset.ready = "";
}

async function firstLook() {
  const told = REPORT ? REPORT.overview : await ask("overview");
  document.getElementById("brand").textContent = `cvx · ${told.store}`;
  tell(`${many(told.events, "event")}, ${told.active.toLocaleString("en")} of them active, ${many(told.episodes, "episode")}; ${told.embedder}${told.can_edit ? "" : "; read only"}`);
  return told;
}

function go(view, asked) {
  location.hash = `#/${view}?${new URLSearchParams(asked)}`;
}

function pages(told, view, asked) {
  if (!told.pages || told.pages < 2) return null;
  const to = (page, label, there) => h("button", { disabled: !there, onclick: () => go(view, { ...asked, page }) }, label);
  return h("div", { class: "row pages" }, to(told.page - 1, "Earlier page", told.page > 0),
    h("span", { class: "quiet" }, `page ${told.page + 1} of ${told.pages.toLocaleString("en")}`), to(told.page + 1, "Next page", told.page + 1 < told.pages));
}

// --- memories

function choose(name, label, choices, asked, every = "all") {
  const chosen = asked[name] !== undefined, only = choices.length === 1 && choices[0].events === about.events;
  if (!choices.length || (only && !chosen)) return null;
  const id = `f-${name}`;
  const options = choices.map((one) => h("option", { value: one.value, selected: asked[name] === one.value },
    `${one.label || "(unnamed)"}${one.events === undefined ? "" : ` (${one.events.toLocaleString("en")})`}`));
  return h("div", {}, h("label", { for: id }, label), h("select", { id, name }, h("option", { value: "\u0000" }, every), options));
}

function typed(name, label, value, wide = false, kind = "search") {
  return h("div", { class: wide ? "wide" : null }, h("label", { for: `f-${name}` }, label),
    h("input", { id: `f-${name}`, name, type: kind, value: value || "", autocomplete: "off" }));
}

/** Return what a form of filters says, and call `changed` when that changes. */
function filters(form, names, changed) {
  let wait = 0;
  const read = () => {
    const asked = {};
    for (const name of names) {
      const field = form.elements[name];
      if (!field || field.value === "\u0000" || (field.value === "" && field.tagName === "INPUT")) continue;
      asked[name] = field.value;
    }
    return asked;
  };
  form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(() => changed(read()), 25); });
  form.addEventListener("submit", (event) => { event.preventDefault(); changed(read()); });
}

const FIELDS = ["q", "entity", "kind", "source", "tag", "namespace", "state", "outcome", "since", "until"];

function eventItem(row) {
  return h("li", {}, link("event", { id: row.id }, said(row.text)), h("p", { class: "meta" },
    h("span", {}, `#${row.id}`), h("span", {}, when(row.time)), row.entity && h("span", { dir: "auto" }, row.entity), row.kind !== "event" && h("span", {}, row.kind),
    row.action && h("span", { dir: "auto" }, `did: ${row.action}`), ended(row.reward) || null, row.source && h("span", {}, `from ${row.source}`),
    row.namespace && h("span", {}, `in ${row.namespace}`), row.state !== "active" && h("span", {}, row.state), row.tags.map((tag) => h("span", { class: "tag", dir: "auto" }, tag))));
}

async function memories(asked) {
  const list = h("ol", { class: "list" }), count = h("p", { class: "quiet", role: "status" }), time = h("div", {}), more = h("div", {});
  let turn = 0;
  const fill = async (wanted) => {
    const mine = ++turn;
    const [told, line] = [ask("events", wanted), ask("timeline", omit(wanted, "page"))];
    const found = await told;
    if (mine !== turn) return;
    list.replaceChildren(...found.rows.map(eventItem));
    count.textContent = found.total === null ? "the latest; counting the others" : found.total ? many(found.total, "event") : "no event passes these filters";
    more.replaceChildren(...[pages(found, "memories", wanted)].filter(Boolean));
    const drawnTime = async () => {
      const bins = await line;
      if (mine !== turn) return;
      const narrow = (bin) => go("memories", { ...omit(wanted, "page"), since: bin.since, until: bin.until });
      time.replaceChildren(bins.bins.length ? timelineChart(bins, when, narrow) : "");
      if (found.total !== null) return;
      about = null;
      show();
    };
    if (found.total === null) drawnTime().catch(complain); else await drawnTime();
  };
  const shown = { state: "active", ...asked };
  if (shown.state === "any") delete shown.state;
  await fill(shown);
  const states = about.states.map((value) => ({ value, label: value }));
  const form = h("form", { class: "filters", role: "search", "aria-label": "Filter memories" },
    typed("q", "Search the texts", asked.q, true), choose("entity", "Entity", about.entity, asked), choose("kind", "Kind", about.kind, asked),
    choose("source", "Source", about.source, asked), choose("tag", "Tag", about.tag, asked), choose("namespace", "Namespace", about.namespace, asked),
    choose("outcome", "Outcome", [{ value: "won", label: "won" }, { value: "lost", label: "lost" }, { value: "none", label: "none" }], asked),
    choose("state", "State", [...states, { value: "any", label: "any" }], { state: asked.state || "active" }, "active "),
    typed("since", "Since", asked.since && when(Number(asked.since))), typed("until", "Until", asked.until && when(Number(asked.until))));
  form.elements.state.options[0].remove();
  filters(form, FIELDS, (wanted) => {
    for (const name of ["since", "until"]) if (wanted[name]) wanted[name] = timeOf(wanted[name]) || undefined;
    const kept = {};
    for (const name of ["region", "episode"]) if (asked[name] !== undefined) kept[name] = asked[name];
    const told = { ...kept, ...omit(wanted) };
    history.replaceState(null, "", `#/memories?${new URLSearchParams(told.state === "active" ? omit(told, "state") : told)}`);
    fill(told.state === "any" ? omit(told, "state") : told).then(() => complain(null), complain);
  });
  const of = asked.region !== undefined ? "one region of the map" : asked.episode !== undefined ? `episode ${asked.episode}` : null;
  return [h("h1", {}, "Memories"), of ? h("p", {}, `Of ${of}. `, link("memories", {}, "All memories")) : null, form, time, count, list, more].filter(Boolean);
}

function omit(asked, ...names) {
  return Object.fromEntries(Object.entries(asked).filter(([name, value]) => value !== undefined && !names.includes(name)));
}

async function oneEvent(asked) {
  const event = await ask("event", { id: asked.id });
  const facts = [["Happened", when(event.time)], ["Recorded", event.recorded === null ? "" : new Date(event.recorded / 1000).toISOString().slice(0, 19).replace("T", " ")],
    ["Entity", event.entity], ["Kind", event.kind], ["Did", event.action], ["Outcome", ended(event.reward)], ["Tags", event.tags.join(", ")], ["Source", event.source],
    ["Trust", event.trust], ["Salience", event.salience], ["Namespace", event.namespace], ["Visibility", event.visibility], ["Key", event.key], ["State", event.state],
    ["Version", event.version], ["Episode", event.episode === null ? "" : link("episode", { id: event.episode }, `episode ${event.episode}`)],
    ...Object.entries(event.metadata || {})];
  const ends = (title, links) => (links && links.length ? [h("h2", {}, title), h("ul", { class: "list" }, links.map((one) =>
    h("li", {}, link("event", { id: one.id }, said(one.text)), h("p", { class: "meta" }, h("span", {}, `${one.kind} ${number(one.weight, 2)}`),
      one.probability !== null && h("span", {}, "probably"), one.why && h("span", { dir: "auto" }, one.why)))))] : []);
  const older = (event.history || []).map((one) => h("li", {}, h("p", { class: "quiet" }, `version ${one.version}`), h("pre", { class: "said", dir: "auto" }, one.text)));
  return [h("h1", {}, `Event ${event.id}`), h("pre", { class: "said", dir: "auto", tabindex: "0", "aria-label": "What it says" }, event.text),
    h("dl", {}, facts.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) => [h("dt", {}, name), h("dd", { dir: "auto" }, value)])),
    h("p", { class: "row" }, link("causes", { of: event.id }, "Causes and consequences as a graph")), about.can_edit ? editing(event) : null,
    ...ends("Because", event.causes), ...ends("It led to", event.consequences),
    ...(older.length ? [h("h2", {}, "Earlier versions"), h("ol", { class: "list" }, older)] : []),
    ...((event.shown || []).length ? [h("h2", {}, "Shown in"), h("ul", { class: "list" }, event.shown.map(decisionItem))] : [])].filter(Boolean);
}

function editing(event) {
  const text = h("textarea", { id: "e-text", rows: 4, dir: "auto" });
  text.value = event.text;
  const tags = h("input", { id: "e-tags", value: event.tags.join(", ") });
  const send = (what) => change({ id: event.id, ...what }).then(() => { about = null; return show(); }).then(() => tell(`event ${event.id} is changed`), complain);
  const gone = event.state !== "active";
  return h("section", { "aria-label": "Change this event" }, h("h2", {}, "Change it"), h("form", { onsubmit: (e) => {
    e.preventDefault();
    const wanted = { tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean) };
    send(text.value === event.text ? wanted : { ...wanted, text: text.value });
  } }, h("label", { for: "e-text" }, "Text"), text, h("label", { for: "e-tags" }, "Tags, with commas between"), tags,
  h("div", { class: "row" }, h("button", { class: "main" }, "Save"),
    h("button", { type: "button", onclick: () => send({ state: gone ? "active" : "archived" }) }, gone ? "Bring it back" : "Forget it"))),
  nothing("Forgotten events are in no recall any more, and can be brought back. cvx forget --erase erases for good."));
}

// --- map and causes

async function map() {
  const told = await ask("map");
  if (!told.regions.length) return [h("h1", {}, "Map"), nothing("Nothing is remembered yet.")];
  const list = (one) => go("memories", { region: one.id });
  return [h("h1", {}, "Map"), nothing(`${many(told.regions.length, "region")} of level ${told.level}, laid out along their two principal components, which show ${percent(told.share)} of what tells them apart; crowded parts are stretched. A disc is as large as its region; its colour is how its memories ended.`),
    mapChart(told, list, (id) => go("event", { id })), h("p", { class: "meta" }, h("span", { class: "won" }, "● mostly won"), h("span", { class: "lost" }, "● mostly lost"), h("span", {}, "● even, or no outcomes")),
    h("h2", {}, "Regions"), table("Regions", ["around ", "memories", "mean outcome"], told.regions.slice(0, 100).map((one) => [link("memories", { region: one.id }, one.text || `region ${one.id}`), one.events.toLocaleString("en"), number(one.reward, 2)]))];
}

async function causes(asked) {
  const field = h("input", { id: "of", value: asked.of || "", type: "search", autocomplete: "off" });
  const form = h("form", { class: "row", role: "search", "aria-label": "Causes of an event", onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) go("causes", { of: field.value.trim() }); } },
    h("div", { class: "grow" }, h("label", { for: "of" }, REPORT ? "The id of an event" : "The id of an event, or words that find it"), field), h("button", { class: "main" }, "Show"));
  const parts = [h("h1", {}, "Causes"), form];
  if (asked.of) {
    const told = await ask("chain", { of: asked.of });
    const text = new Map(told.nodes.map((node) => [node.id, node.text]));
    parts.push(h("p", {}, "What led to event ", link("event", { id: told.of }, `#${told.of}`), ", to the left, and what came of it, to the right."));
    parts.push(told.edges.length ? chainChart(told, (id) => go("causes", { of: id })) : nothing("No cause and no consequence of it is known."));
    if (told.more) parts.push(nothing("There is more than is drawn: open an event at the edge to go on."));
    if (told.edges.length) parts.push(table("Links", ["cause ", "led to ", "how ", "kind ", "weight"], told.edges.map((edge) => [
      text.get(edge.from) || `#${edge.from}`, text.get(edge.to) || `#${edge.to}`, edge.why, edge.probability === null ? edge.kind : `${edge.kind}, probably`, number(edge.weight, 2)])));
  }
  const most = await ask("linked");
  parts.push(h("h2", {}, "Events that most links lead to"), most.rows.length ? h("ol", { class: "list" }, most.rows.map((row) =>
    h("li", {}, link("causes", { of: row.id }, said(row.text)), h("p", { class: "meta" }, `#${row.id}, ${many(row.links, "link")}`)))) : nothing("Nothing is linked yet: cvx link CAUSE EFFECT."));
  return parts;
}

// --- recall

function decisionItem(one) {
  return h("li", {}, link("recall", { decision: one.decision }, said(one.cue || "(a vector)")), h("p", { class: "meta" }, h("span", {}, new Date(one.recorded / 1000).toISOString().slice(0, 19).replace("T", " ")),
    h("span", {}, many(one.candidates, "memory").replace("memorys", "memories")), one.action && h("span", { dir: "auto" }, `then did: ${one.action}`), ended(one.outcome) || null, one.episode !== null && link("episode", { id: one.episode }, `episode ${one.episode}`)));
}

function hitItem(hit, place, most, notes) {
  const rows = hit.factors.map((one) => [one.name, number(one.value), number(one.weight), number(one.share)]);
  return h("li", {}, h("h3", {}, hit.id === null ? said(hit.text) : link("event", { id: hit.id }, said(hit.text))),
    h("p", { class: "meta" }, h("span", {}, `place ${place}`), h("span", {}, `score ${number(hit.score)}`), hit.relevance !== null && hit.relevance !== undefined && h("span", {}, `${percent(hit.relevance)} likely to be wanted`),
      hit.followed && h("span", {}, "followed"), notes),
    hit.factors.length ? [factorBar(hit.factors, most), h("details", {}, h("summary", {}, "Factor by factor"), table("Factors of the score", ["factor ", "value", "× weight", "= share"], rows),
      hit.path && hit.path.length ? h("p", { class: "quiet" }, "walked ", hit.path.map((edge) => `#${edge.from} ${edge.kind} #${edge.to}`).join(", ")) : null)] : null);
}

async function recall(asked) {
  const cue = h("input", { id: "cue", value: asked.cue || "", type: "search", autocomplete: "off" });
  const parts = [h("h1", {}, "Recall")];
  let told = null;
  if (asked.cue || asked.decision) {
    told = await ask("recall", asked);
    cue.value = told.cue;
  }
  if (!REPORT) {
    // A past recall is asked again by whom it was asked then.
    const whose = told && about.namespace.length > 1 ? { ...asked, namespace: told.namespace } : asked;
    const form = h("form", { role: "search", class: "row", "aria-label": "Recall", onsubmit: (event) => { event.preventDefault(); if (cue.value.trim()) go("recall", { cue: cue.value.trim(), ...chosen() }); } },
      h("div", { class: "grow" }, h("label", { for: "cue" }, "Cue, in any words"), cue), choose("namespace", "Who asks", about.namespace, whose, "(the largest)"), h("button", { class: "main" }, "Recall"));
    const chosen = () => { const field = form.elements.namespace; return field && field.value !== "\u0000" ? { namespace: field.value } : {}; };
    parts.push(form, nothing("Nothing is counted or noted by asking here."));
  }
  if (told) {
    const then = told.then, most = Math.max(1e-9, ...told.now.map((hit) => hit.score)), before = then ? then.hits.map((hit) => hit.id) : [];
    const now = h("section", {}, h("h2", {}, "Now"), told.now.length ? h("ol", { class: "list" }, told.now.map((hit, at) => {
      const was = before.indexOf(hit.id);
      return hitItem(hit, at + 1, most, then ? h("span", {}, was < 0 ? "not returned then" : was === at ? "same place then" : `place ${was + 1} then`) : null);
    })) : [nothing("Nothing fits well enough. What came nearest:"), h("ol", { class: "list" }, told.nearest.map((hit, at) => hitItem(hit, at + 1, most, null)))],
    h("details", {}, h("summary", {}, "What happened in this recall"), h("pre", { tabindex: "0" }, told.trace)));
    const highest = then ? Math.max(1e-9, ...then.hits.map((hit) => hit.score)) : 1;
    const old = h("section", {}, h("h2", {}, then ? `Then, ${new Date(then.recorded / 1000).toISOString().slice(0, 19).replace("T", " ")}` : "Then"),
      then ? [h("p", { class: "meta" }, then.action && h("span", { dir: "auto" }, `then did: ${then.action}`), ended(then.outcome) || null, then.episode !== null && link("episode", { id: then.episode }, `episode ${then.episode}`)),
        then.hits.length ? h("ol", { class: "list" }, then.hits.map((hit, at) => hitItem(hit, at + 1, highest, null))) : nothing("Nothing was returned."),
        then.rendered ? h("details", {}, h("summary", {}, "What the agent was shown"), h("pre", { dir: "auto", tabindex: "0" }, then.rendered)) : null]
        : nothing("No recall of these words was noted."));
    parts.push(h("div", { class: "columns" }, now, old));
  }
  const page = asked.page || 0, list = await ask("decisions", omit({ page, q: asked.q }));
  parts.push(h("h2", {}, "What was asked before"), list.rows.length ? h("ol", { class: "list" }, list.rows.map(decisionItem)) : nothing("No recall, context or advice was noted yet."));
  const next = pages(list, "recall", omit({ ...asked, page: undefined }));
  if (next) parts.push(next);
  return parts;
}

// --- episodes and learning

async function episodes(asked) {
  const told = await ask("episodes", asked), learned = await ask("learning");
  const form = h("form", { class: "filters", role: "search", "aria-label": "Filter episodes" }, typed("q", "Search goals", asked.q, true), choose("task", "Task", told.tasks, asked),
    choose("outcome", "Outcome", [{ value: "won", label: "won" }, { value: "lost", label: "lost" }], asked));
  filters(form, ["q", "task", "outcome"], (wanted) => {
    history.replaceState(null, "", `#/episodes?${new URLSearchParams(wanted)}`);
    ask("episodes", wanted).then((again) => { list.replaceChildren(...items(again, wanted)); complain(null); }, complain);
  });
  const items = (found, wanted) => [nothing(many(found.total, "episode")), h("ol", { class: "list" }, found.rows.map((row) => h("li", {}, link("episode", { id: row.id }, said(row.goal || row.task || `episode ${row.id}`)),
    h("p", { class: "meta" }, h("span", {}, `#${row.id}`), ended(row.reward) || h("span", {}, "open"), h("span", {}, many(row.steps, "step")), row.kind !== "experience" && h("span", {}, row.kind), row.task !== row.goal && h("span", { dir: "auto" }, row.task))))),
    pages(found, "episodes", wanted)].filter(Boolean);
  const list = h("div", {}, items(told, asked));
  return [h("h1", {}, "Episodes"), ...curves(learned.curves.slice(0, 1)), form, list];
}

function curves(drawn) {
  if (!drawn.length) return [];
  const units = [...new Set(drawn.map((one) => one.unit))];
  return units.flatMap((unit) => {
    const some = drawn.filter((one) => one.unit === unit);
    return [curveChart(some), nothing(`Each point is the mean of the last ${[...new Set(some.map((one) => one.window))].join(" or ")} episodes; demonstrations are left out.`),
      asTable("Learning curves", ["task ", "episodes", unit === "mean return" ? "first" : "first won", unit === "mean return" ? "last" : "last won"], some.map((one) => [one.name, one.episodes,
        unit === "mean return" ? number(one.points[0][1]) : percent(one.points[0][1]), unit === "mean return" ? number(one.points[one.points.length - 1][1]) : percent(one.points[one.points.length - 1][1])]))];
  });
}

async function oneEpisode(asked) {
  const told = await ask("episode", { id: asked.id });
  const steps = told.steps.map((step, at) => {
    const advice = step.advice, parts = [h("p", { class: "meta" }, h("span", {}, `step ${at + 1}`), link("event", { id: step.id }, `#${step.id}`), step.reward !== null && h("span", {}, `reward ${number(step.reward, 2)}`)),
      h("p", {}, said(step.text))];
    if (step.action !== null) parts.push(h("p", { class: "did" }, "did: ", said(step.action)));
    if (advice) {
      const taken = advice.action ?? step.action, chance = advice.unit !== "return";
      const worth = (value) => (chance ? percent(value) : number(value));
      if (advice.options.length) parts.push(table(`What each action was expected to be worth at step ${at + 1}`, ["action ", chance ? "chance of success" : "expected return", "done "],
        advice.options.map((one) => [said(one.action), worth(one.value), one.action === taken ? "taken" : ""])));
      parts.push(h("p", { class: "meta" }, advice.predicted !== null && h("span", {}, `expected ${worth(advice.predicted)}`), advice.chance !== null && h("span", {}, `chosen with a chance of ${percent(advice.chance)}`),
        advice.hits.length ? h("span", {}, `rests on ${many(advice.hits.length, "memory").replace("memorys", "memories")}, ${advice.hits.filter((hit) => hit.followed).length} followed`) : null, link("recall", { decision: advice.decision }, "this decision")));
    }
    return h("li", { class: advice ? "taken" : null }, parts);
  });
  const end = told.reward === null ? "It has not ended." : told.return !== null && told.return !== undefined ? `It ended with a return of ${number(told.return)}.` : ["It ended: ", ended(told.reward)];
  return [h("h1", { dir: "auto" }, `Episode ${told.id}: ${told.goal || told.task || ""}`), h("p", { class: "meta" }, h("span", {}, told.kind), told.task && h("span", { dir: "auto" }, `task: ${told.task}`), link("memories", { episode: told.id, state: "any" }, "its memories")),
    h("ol", { class: "steps" }, steps), h("p", {}, end)];
}

async function learning(asked) {
  const told = await ask("learning", asked), mdp = told.mdp;
  const parts = [h("h1", {}, "Learning"), h("h2", {}, "Learning curves"), ...(told.curves.length ? curves(told.curves) : [nothing("No episode has ended yet.")]), h("h2", {}, "Regions and flows")];
  if (mdp.regions.length) {
    parts.push(flowChart(mdp, (one) => go("event", { id: one.event })), nothing(`From left to right lies when in an episode a region is passed; above a disc is the chance of success there, below it the best kind of action. An arrow is as thick as its move is frequent.${mdp.left_out ? ` ${mdp.left_out} regions visited less often are left out.` : ""}`),
      asTable("Regions", ["region ", "moves", "chance of success", "from", "to", "best action "], mdp.regions.map((one) => [one.text || `region ${one.id}`, Math.round(one.moves), percent(one.quality), percent(one.low), percent(one.high), one.best[0] || ""])));
  } else parts.push(nothing(mdp.problem || "No episode has taught the decision process yet."));
  if (told.calibration) parts.push(h("h2", {}, "What was expected, and what happened"), table("Calibration", ["expected ", "happened", "from", "to", "predictions"],
    told.calibration.bins.map((bin) => [percent(bin.predicted), percent(bin.happened[0]), percent(bin.happened[1]), percent(bin.happened[2]), bin.n])));
  parts.push(h("h2", {}, "What a recall weighs"), asTable("Weights", ["signal ", "weight"], Object.entries(told.weights).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).map(([name, weight]) => [name, number(weight)])));
  return parts;
}

const DRAW = { memories, event: oneEvent, map, causes, recall, episodes, episode: oneEpisode, learning };

// --- begin

const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  keep(decodeURIComponent(given[1]));
  history.replaceState(null, "", "#/memories");
} else {
  try { token = sessionStorage.getItem("cvx-token") || ""; } catch { /* A report, or storage is off. */ }
}
document.getElementById("views").append(...Object.entries(VIEWS).map(([view, name]) => h("li", {}, h("a", { href: `#/${view}`, "data-view": view }, name))));
addEventListener("hashchange", () => show({ focus: true }));
show();
