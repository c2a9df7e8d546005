// main.js - what is drawn, when, and what the keyboard does.
import { aim, ageOf, hurry, isStale, live, now, sessionOpen, sources, start } from "./live.js";
import { actors, clock, converged, deadLetters, denied, eventTable, h, lastOf, members, oneActor, shards, short, show, span, waiting, wrong } from "./draw.js";
import { ring, timeline } from "./ring.js";

const body = (id) => document.querySelector(`#${id} > .body`);
let chosen = "", codeWhy = "", childrenOf = "";

// Say how old a section is when it is older than it should be.
function mark(id, ...used) {
    const old = used.filter((s) => isStale(s) || (live.goneSince !== 0 && s.at !== 0));
    const section = document.getElementById(id), title = section.querySelector("h2");
    section.classList.toggle("stale", old.length > 0);
    let age = title.querySelector(".age");
    if (old.length === 0) {
        age?.remove();
        return;
    }
    if (age === null) {
        age = h("span", { class: "age" });
        title.append(age);
    }
    age.textContent = `stale: as of ${span(Math.max(...old.map(ageOf)))} ago`;
}

function goneText() {
    if (live.goneSince === 0) {
        return "";
    }
    const ago = now() - (live.answeredAt || live.goneSince);
    return live.answeredAt === 0 ? "This node does not answer."
        : `This node has not answered since ${clock(Date.now() - ago)} (${span(ago)} ago).`;
}

function drawLink() {
    const link = document.getElementById("link"), status = sources.status, gone = goneText();
    const state = gone !== "" ? "gone" : status.at === 0 ? "starting" : isStale(status) ? "late" : "live";
    const text = gone !== "" ? gone : status.at === 0 ? status.why || "Connecting" : isStale(status) ? `Late: the last answer is ${span(ageOf(status))} old`
        : live.follows ? "Live" : "Live, by polls alone: the stream of events is not open";
    link.dataset.state = state;
    if (link.textContent !== text) {
        link.textContent = text;
    }
    document.title = `${gone !== "" ? "(gone) " : ""}${short(status.data?.selfNode)} - Troupe`;
    document.getElementById("node").textContent = status.data ? `${status.data.system} at ${short(status.data.selfNode)}` : "";
}

// A section of one source: what to draw of its answer.
function section(id, source, draw, ...others) {
    mark(id, source, ...others);
    show(body(id), source.denied ? denied() : source.data === null ? waiting(source) : draw(source.data));
}

function drawActor() {
    const { actor, senders, logs, top, dead } = sources;
    mark("one", actor);
    if (chosen === "") {
        show(body("one"), h("p", { class: "dim" }, "Choose one above, or by its path."));
    } else if (actor.denied) {
        show(body("one"), denied());
    } else {
        const named = (line) => line.scope?.name === chosen || line.body.includes(chosen) || Object.values(line.attributes ?? {}).includes(chosen);
        const [entry, ...below] = actor.data?.entries ?? [], row = top.data?.rows.find((r) => r.path === chosen);
        show(body("one"), entry || (row && actor.why !== "") ? oneActor(chosen, entry, row, senders.data?.senders ?? null, actor.why)
            : h("p", { class: actor.why === "" ? "dim" : "word-warn" }, actor.why === "" ? "Waiting for the node." : actor.why),
        lastOf(chosen, (logs.data?.lines ?? []).filter(named).slice(-20).reverse(), dead.data?.deadLetters ?? []),
        entry?.children > 0 ? childList(entry, below) : null);
    }
}

const CHILDREN_MAX = 100;
function childList(entry, below) {
    if (childrenOf !== chosen) {
        return h("p", {}, h("button", { type: "button", "data-key": "children", "data-act": "children" }, `Show its ${entry.children} children`));
    }
    const children = below.filter((e) => e.depth === 1).slice(0, CHILDREN_MAX);
    return [h("h3", {}, `Children${entry.children > CHILDREN_MAX ? `, the first ${CHILDREN_MAX} of ${entry.children}` : ""}`),
        h("ul", {}, children.map((e) => h("li", {}, h("a", { href: `#actor=${encodeURIComponent(e.path)}`, "data-key": `child:${e.path}` }, e.path),
            ` ${e.behaviour}, ${e.pending} waiting`)))];
}

function drawMembers() {
    const { members: source, status } = sources;
    section("members", source, (reply) => [status.data ? converged(status.data) : null,
        h("div", { class: "pair members" }, h("div", {}, ring(reply, short)), h("div", {}, members(reply)))], status);
}

function draw() {
    drawLink();
    const { status, top, shards: shardsSource, singleton, dead } = sources;
    mark("wrong", status);
    show(body("wrong"), codeWhy === "" ? null : h("p", { class: "word-warn" }, codeWhy),
        wrong({ status: status.data, top: top.data, shards: shardsSource.data }, goneText(), !isStale(status)));
    section("actors", top, actors);
    drawActor();
    drawMembers();
    section("shards", shardsSource, (reply) => shards(reply, singleton.data));
    section("dead", dead, deadLetters);
    show(body("events"), timeline(live.events, live.rates, Math.max(320, Math.min(900, body("events").clientWidth))),
        h("p", { class: "dim" }, live.complete ? "All events since this node started. " : "The last that this node and this page have kept. ",
            "Line: messages a second on this node, since this page was opened."), eventTable(live.events));
    const paths = document.getElementById("paths");
    show(paths, (top.data?.rows ?? []).map((row) => h("option", { value: row.path })));
}

const TREE_MS = 1000; // an actor that holds its thread does not answer
function choose(path) {
    const text = encodeURIComponent(path);
    chosen = path;
    document.getElementById("path").value = path;
    aim(sources.actor, path === "" ? "" : `/control/tree?path=${text}&depth=${childrenOf === path ? 1 : 0}&timeoutMs=${TREE_MS}`);
    aim(sources.senders, path === "" ? "" : `/control/senders?path=${text}`);
    aim(sources.logs, path === "" ? "" : "/control/logs?level=warning&count=500");
    draw();
}

function hashTake() {
    if (location.hash.startsWith("#actor=")) {
        choose(decodeURIComponent(location.hash.slice("#actor=".length)));
        document.getElementById("one").focus();
    }
}

const THEMES = ["system", "light", "dark"];
function themeSet(theme) {
    document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = `Theme: ${theme}`;
    localStorage.setItem("troupe-theme", theme);
}

async function begin() {
    themeSet(THEMES.find((theme) => theme === localStorage.getItem("troupe-theme")) ?? "system");
    document.getElementById("theme").addEventListener("click", () => {
        themeSet(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
    });
    document.getElementById("pick").addEventListener("submit", (event) => {
        event.preventDefault();
        location.hash = `#actor=${encodeURIComponent(document.getElementById("path").value.trim())}`;
    });
    document.addEventListener("click", (event) => {
        if (event.target.dataset?.act === "children") {
            childrenOf = chosen;
            choose(chosen);
            hurry(sources.actor);
        }
    });
    if (location.hash.startsWith("#code=")) {
        const code = location.hash.slice("#code=".length);
        history.replaceState(null, "", location.pathname); // it is good no more, and nobody need see it
        try {
            codeWhy = await sessionOpen(code);
        } catch {
            codeWhy = "The node does not answer; open the address again.";
        }
    }
    addEventListener("hashchange", hashTake);
    start(draw);
    hashTake();
    draw();
    setInterval(draw, 1000); // ages
}

begin();
