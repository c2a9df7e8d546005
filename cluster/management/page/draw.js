// draw.js - from answers to nodes of the document. Texts of the node become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function make(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value !== null && value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== "").map((child) =>
        (child instanceof Node ? child : document.createTextNode(String(child)))));
    return element;
}
export const h = (tag, attributes = {}, ...children) => make(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => make(document.createElementNS(SVG, tag), attributes, children);

// Make `old` what `fresh` is, and keep the elements: what has the keyboard's focus keeps it, and nothing that is the same is
// drawn anew.
function morph(old, fresh) {
    for (const { name } of [...old.attributes]) {
        if (!fresh.hasAttribute(name)) {
            old.removeAttribute(name);
        }
    }
    for (const { name, value } of fresh.attributes) {
        if (old.getAttribute(name) !== value) {
            old.setAttribute(name, value);
        }
    }
    const olds = [...old.childNodes], news = [...fresh.childNodes];
    news.forEach((child, index) => {
        const present = olds[index];
        if (present === undefined) {
            old.append(child);
        } else if (present.nodeName !== child.nodeName) {
            present.replaceWith(child);
        } else if (child.nodeType === Node.TEXT_NODE) {
            if (present.data !== child.data) {
                present.data = child.data;
            }
        } else {
            morph(present, child);
        }
    });
    olds.slice(news.length).forEach((child) => child.remove());
}

// Rows move; the focus stays with the thing that had it (data-key), not with the place.
export function show(container, ...children) {
    const key = document.activeElement?.dataset?.key;
    const held = key !== undefined && container.contains(document.activeElement);
    morph(container, make(container.cloneNode(false), {}, children));
    if (held && document.activeElement?.dataset?.key !== key) {
        container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
    }
}

// ---- words -------------------------------------------------------------------------------------

export const many = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
export const count = (n) => (n === null || n === undefined ? "?" : Number(n).toLocaleString("en"));
export function span(ms) {
    if (ms === null || ms === undefined || !Number.isFinite(ms)) {
        return "-";
    }
    if (ms < 1000) {
        return ms < 1 ? `${Math.round(ms * 1000)} µs` : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
    }
    const seconds = Math.floor(ms / 1000), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
    return seconds < 60 ? `${seconds} s` : minutes < 60 ? `${minutes} min ${seconds % 60} s`
        : hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
export const short = (address) => (address ?? "").replace(/^[a-z.+]*:\/\/[^@]*@/, "");
const list = (addresses) => addresses.map(short).join(", ");

// columns: [title, cell of a row, "number" | "path" | undefined]
export function table(caption, columns, rows, empty) {
    if (rows.length === 0) {
        return [h("h3", {}, caption), h("p", { class: "dim" }, empty)];
    }
    return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
        h("table", { role: "table" }, h("caption", {}, caption),
            h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
                columns.map(([title, , kind]) => h("th", { scope: "col", role: "columnheader", class: kind ?? null }, title)))),
            h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" },
                columns.map(([title, cell, kind]) =>
                    h("td", { role: "cell", "data-label": title, class: kind ?? null }, cell(row))))))));
}
const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
const actorLink = (path, where) => h("a", { href: `#actor=${encodeURIComponent(path)}`, "data-key": `${where}:${path}` }, path);

export const denied = () => h("p", { class: "note" }, "Only a reader may see this: run ", h("code", {}, "troupe dashboard"),
    " on the host of this node and open the address that it prints.");
export const waiting = (source) => h("p", { class: "dim" }, source.why === "" ? "Waiting for the node." : source.why);

// ---- what is wrong -----------------------------------------------------------------------------

const HELD_MS = 1000, WAITED_MS = 5000;

// Each finding: [is it bad, what, since or "", what to do or ""].
export function findings(data, gone) {
    const found = [];
    if (gone !== "") {
        found.push([true, gone, "", "What is below is as it was then. On the host of the node: troupe status, journalctl."]);
    }
    const { status, top, shards } = data;
    const told = new Set();
    for (const reason of status?.reasons ?? []) {
        const who = reason.nodes?.length ? reason.nodes : reason.node ? [reason.node] : [];
        const accusers = reason.observedBy?.length ? `, says ${list(reason.observedBy)}` : "";
        who.forEach((node) => told.add(node));
        found.push([reason.kind === "unreachable" || reason.kind === "two-clusters",
            `${reason.kind}: ${list(who)}${accusers}`, span(reason.sinceMs), reason.help ?? ""]);
    }
    if (status?.outlook) {
        const o = status.outlook;
        found.push([o.verdict === "stops", `downing, ${o.verdict} in ${span(o.inMs)}: ${o.reason}`, "", o.who ? `concerns ${o.who}` : ""]);
    }
    for (const problem of status?.problems ?? []) {
        const isOutlook = status.outlook && problem.startsWith("this node stops");
        if (!isOutlook && ![...told].some((node) => problem.includes(node))) {
            found.push([true, problem, "", ""]);
        }
    }
    for (const row of top?.rows ?? []) {
        if (row.heldMs > HELD_MS) {
            found.push([true, `${row.path} has held its thread with one message`, span(row.heldMs), "troupe doctor names what it does"]);
        } else if (row.suspended) {
            found.push([false, `${row.path} is suspended: it waits for the decision of its supervisor`, "", ""]);
        } else if (row.ageMs > WAITED_MS) {
            found.push([false, `a message to ${row.path} waits`, span(row.ageMs), ""]);
        }
    }
    for (const type of shards?.types ?? []) {
        if (type.waits) {
            found.push([false, `shards of ${type.type}: ${type.waits}`, span(type.waitsMs), ""]);
        }
        if (type.why) {
            found.push([true, `shards of ${type.type} are refused: ${type.why}`, "", ""]);
        }
    }
    return found;
}

export function wrong(data, gone, fresh) {
    const found = findings(data, gone), status = data.status;
    const summary = status ? h("p", {}, `${many(status.members, "member")}, ${count(status.up)} Up, ${count(status.unreachable)} unreachable; `,
        `${count(status.actors)} actors here, ${count(Math.round(status.messagesPerSecond))} messages/s, `,
        `${many(status.deadLetters, "dead letter")}; this node is ${status.selfStatus}, up for ${span(status.uptimeMs)}`) : null;
    if (found.length > 0) {
        return [h("ul", { class: "wrong" }, found.map(([bad, what, since, todo]) => h("li", { class: bad ? "bad" : null },
            h("strong", {}, bad ? "Wrong: " : "Look: "), what, since === "" ? "" : ` (${since})`,
            todo === "" ? "" : h("div", { class: "dim" }, todo)))), summary];
    }
    return [status && fresh ? h("p", { class: "good" }, "Nothing is wrong, as this node sees it.")
        : h("p", { class: "dim" }, "Not known yet."), summary];
}

// ---- actors ------------------------------------------------------------------------------------

const ROWS = 12;
const turnOf = (row) => Math.max(row.heldMs ?? 0, row.runMs ?? 0);
const depthOf = (row) => row.mailbox ?? (row.ageMs > 0 ? Infinity : -1);

export function actors(top) {
    const deep = [...top.rows].filter((r) => depthOf(r) > 0).sort((a, b) => depthOf(b) - depthOf(a)).slice(0, ROWS);
    const long = [...top.rows].filter((r) => turnOf(r) > 0).sort((a, b) => turnOf(b) - turnOf(a)).slice(0, ROWS);
    const walk = top.walkAgeMs === null ? "the node begins to look at them" : `as of ${span(top.walkAgeMs)} before`;
    return [h("p", { class: "dim" }, `${many(top.actors, "actor")}, ${count(top.active)} active, ${count(top.suspended)} suspended, `,
        `${count(top.overloaded)} behind; ${walk}`),
    h("div", { class: "pair" },
        h("div", {}, table("Deepest mailboxes", [
            ["Actor", (r) => actorLink(r.path, "deep"), "path"],
            ["Mailbox", (r) => count(r.mailbox), "number"],
            ["Oldest", (r) => span(r.ageMs), "number"],
            ["Wait", (r) => span(r.waitMs), "number"],
            ["Messages/s", (r) => count(Math.round(r.messagesPerS)), "number"]], deep, "No mailbox has a message that waits.")),
        h("div", {}, table("Longest turns", [
            ["Actor", (r) => actorLink(r.path, "long"), "path"],
            ["Turn", (r) => (r.heldMs ? h("span", { class: "word-bad" }, `still, ${span(r.heldMs)}`) : span(r.runMs)), "number"],
            ["Behaviour", (r) => r.behaviour, "path"],
            ["Dispatcher", (r) => r.dispatcher]], long, "No turn was sampled yet.")))];
}

// What is left of an actor also when it is gone: lines of the log that name it, and what did not reach it.
export function lastOf(path, lines, dead) {
    const toIt = dead.filter((letter) => letter.recipient === path);
    return [table("Last failures and warnings", [["Time", (l) => clock(l.timestamp)], ["Level", (l) => l.severityText], ["What", (l) => l.body, "path"]],
        lines, "No line of the log names it."),
    toIt.length > 0 ? table("Dead letters to it", deadColumns, toIt, "") : null];
}

// The actor itself, and its senders as far as traces tell them. entry: what it says of itself; without one it does not answer,
// and why says so: then row, what the last walk over the actors saw, is all there is.
export function oneActor(path, entry, row, senders, why) {
    const unknown = "not known: it is not among the busiest", silent = "not known: it does not answer";
    const state = !entry ? h("span", { class: "word-bad" }, why) : entry.suspended
        ? h("span", { class: "word-warn" }, "suspended: waits for its supervisor") : entry.active ? "active" : "deactivated";
    return [facts([
        ["Path", h("code", {}, path)],
        ["Behaviour", entry?.behaviour ?? row.behaviour],
        ["State", state],
        ["Restarts", entry ? h("span", { class: entry.restarts > 0 ? "word-warn" : null }, count(entry.restarts)) : silent],
        ["Messages handled", count(entry?.processed ?? row.handled)],
        ["Messages waiting", count(row?.mailbox ?? entry?.pending)],
        ["Oldest message waits", row ? span(row.ageMs) : unknown],
        ["Wait, turn", row ? `${span(row.waitMs)}, ${row.heldMs ? `still, ${span(row.heldMs)}` : span(row.runMs)}` : unknown],
        ["Children", entry ? count(entry.children) : silent]]),
    h("h3", {}, "Who sends to it"),
    senders === null ? h("p", { class: "dim" }, "Not known yet.")
        : senders.length === 0 ? h("p", { class: "dim" }, "Known of traced messages alone, and none of its messages was traced: ",
            h("code", {}, `troupe trace start --path ${path} --sample 1/100`))
            : table("Senders, of traced messages", [["Sender", (r) => r.actor ?? (r.from === "elsewhere" ? "an actor of another node: troupe trace last" : "not known: its message was in no trace"), "path"],
                ["Messages", (r) => count(r.count), "number"], ["Type", (r) => r.type ?? "-", "path"]], senders, "")];
}

// ---- members -----------------------------------------------------------------------------------

export function converged(status) {
    if (status.converged) {
        return h("p", {}, h("span", { class: "word-good" }, "Converged"), `: all members have seen the present view, since ${span(status.convergedForMs)}.`);
    }
    const reasons = status.reasons ?? [];
    return [h("p", {}, h("span", { class: "word-warn" }, "Not converged"), reasons.length === 0 ? ", and no reason is known yet." : ", since:"),
        h("ul", {}, reasons.map((r) => h("li", {}, `${r.kind} ${list(r.nodes?.length ? r.nodes : r.node ? [r.node] : [])} (${span(r.sinceMs)}). ${r.help ?? ""}`)))];
}

export function members(reply) {
    const lost = new Map(reply.unreachable.map((u) => [u.node, u]));
    const versions = new Set(reply.members.map((m) => m.troupeVersion ?? m.appVersion));
    const marks = (m) => [m.node === reply.selfNode ? "this node" : "", m.node === reply.leader ? "leader" : "", m.node === reply.oldest ? "oldest" : "",
        m.drained ? "drained" : "", m.certificateDaysLeft !== null && m.certificateDaysLeft < 14 ? `certificate ends in ${m.certificateDaysLeft} days` : ""]
        .filter((mark) => mark !== "").join(", ");
    const accused = (u) => `unreachable for ${span(u.sinceMs)}, says ${list(u.observedBy)}`;
    return [table(many(reply.members.length, "member"), [
        ["Address", (m) => m.node, "path"],
        ["Status", (m) => h("span", { class: m.status === "Up" ? null : m.status === "Down" ? "word-bad" : "word-warn" }, m.status)],
        ["Reach", (m) => (lost.has(m.node) ? h("span", { class: "word-bad" }, accused(lost.get(m.node))) : "ok")],
        ["Roles", (m) => m.roles.join(", ") || "-"],
        ["Marks", (m) => marks(m) || "-"],
        ["Age", (m) => span(m.ageMs), "number"],
        ["RTT", (m) => span(m.rttMs), "number"],
        ["Version", (m) => `${m.troupeVersion ?? "?"}${m.appVersion ? `, program ${m.appVersion}` : ""}`]], reply.members, "None: this node has not joined."),
    versions.size > 1 ? h("p", { class: "word-warn" }, `${versions.size} versions run: ${[...versions].join(", ")}.`) : null,
    Object.keys(reply.leaderPerRole ?? {}).length > 0
        ? h("p", { class: "dim" }, "Leaders of roles: ", Object.entries(reply.leaderPerRole).map(([role, node]) => `${role} ${short(node)}`).join(", ")) : null];
}

// ---- shards, dead letters, events --------------------------------------------------------------

export function shards(reply, singletons) {
    return [table("Types of entities", [
        ["Type", (t) => t.type, "path"], ["State here", (t) => t.state], ["Shards", (t) => count(t.shards), "number"],
        ["Here", (t) => count(t.here), "number"], ["Entities here", (t) => count(t.entities), "number"],
        ["Messages kept", (t) => count(t.kept), "number"], ["Coordinator", (t) => (t.coordinates ? "this node" : short(t.coordinator) || "-")],
        ["On", (t) => (t.nodes ?? []).map((n) => `${short(n.node)}: ${n.shards}${n.state === "hosts" ? "" : ` (${n.state})`}`).join(", ") || "-"],
        ["Waits for", (t) => t.waits ?? "-"]], reply.types, "No type of entities was started, as this node has heard."),
    table("Singletons", [["Name", (t) => t.name, "path"], ["Runs on", (t) => short(t.host) || "-"], ["State here", (t) => t.state],
        ["Waits for", (t) => t.waits ?? "-"]], singletons?.singletons ?? [], "No singleton was started on this node.")];
}

const deadColumns = [
    ["Time", (l) => clock(l.time)], ["Reason", (l) => l.reason], ["Recipient", (l) => l.recipient ?? "-", "path"],
    ["Nearest path", (l) => (l.nearest ? h("span", {}, "did you mean ", h("code", {}, l.nearest)) : "-"), "path"],
    ["Sender", (l) => l.sender ?? "-", "path"], ["Type", (l) => l.type ?? "-", "path"], ["Bytes", (l) => count(l.bytes), "number"]];

export function deadLetters(reply) {
    const reasons = Object.entries(reply.byReason ?? {}).filter(([, n]) => n > 0).map(([reason, n]) => `${reason} ${count(n)}`).join(", ");
    return [h("p", {}, `${count(reply.total)} since the start`, reasons === "" ? "." : `: ${reasons}.`),
        table("The last ones", deadColumns, [...reply.deadLetters].reverse().slice(0, 50), "None is kept.")];
}

export function eventText(event) {
    const who = event.member ? short(event.member.node) : event.leader !== undefined ? short(event.leader) || "nobody" : "";
    const more = event.observedBy?.length ? `says ${list(event.observedBy)}` : event.decision ? `${event.decision}: ${event.reason ?? ""}`
        : event.role ? `of role ${event.role}` : event.previousStatus ? `was ${event.previousStatus}` : event.member?.roles?.join(", ") ?? "";
    return [who, more];
}

export const eventTable = (events) => table("Event log", [
    ["Time", ({ event }) => clock(event.time)], ["Event", ({ event }) => event.type], ["Who", ({ event }) => eventText(event)[0], "path"],
    ["More", ({ event }) => eventText(event)[1], "path"]], [...events].reverse().slice(0, 200), "None was kept.");
