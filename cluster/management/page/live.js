// live.js - what the page knows and how old it is: one poll after another, events as they happen.
//
// Must hold.
//   live-L1  At most one poll runs at a time, and none while the page is not looked at.
//   live-L2  An event is told once, whether the stream brought it or the log of the node.
//   live-L3  What was answered last stays, with its age; it is never shown as if it were new.

const ANSWER_MS = 8000;   // after that a poll counts as not answered
const EVENTS_MAX = 2000;  // kept in the page
const TYPES = ["MemberJoined", "MemberWeaklyUp", "MemberUp", "MemberLeft", "MemberExited", "MemberDowned", "MemberRemoved",
    "UnreachableMember", "ReachableMember", "LeaderChanged", "RoleLeaderChanged", "ClusterShuttingDown", "DowningDecision"];
const QUERY = "type=ClusterDomainEvent&type=DowningDecision";

// name: path, how often, and what was answered last. at: when (0: never); why: of the last failure.
const source = (path, everyMs) => ({ path, everyMs, at: 0, asked: 0, data: null, why: "", denied: false });
export const sources = {
    status: source("/control/status", 2000),
    members: source("/control/members", 2000),
    top: source("/control/top", 2000),
    shards: source("/control/shards", 5000),
    singleton: source("/control/singleton", 5000),
    dead: source("/deadletters?count=100", 3000),
    actor: source("", 2000),
    senders: source("", 5000),
    logs: source("", 5000),
};
export const live = { goneSince: 0, answeredAt: 0, events: [], complete: false, follows: false, rates: [] };
const seen = new Set();
let changed = () => {};

export const now = () => performance.now();
export const ageOf = (s) => (s.at === 0 ? Infinity : now() - s.at);
export const isStale = (s) => s.path !== "" && !s.denied && s.at !== 0 && ageOf(s) > 3 * s.everyMs + 2000;

// Ask for a path. Answers { status, data }; throws when nobody answers.
async function get(path, options = {}) {
    const answer = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store", ...options });
    const text = await answer.text();
    let data = null;
    try {
        data = JSON.parse(text);
    } catch {
        data = { message: "the answer is no JSON" };
    }
    return { status: answer.status, data };
}

// Exchange the code of `troupe dashboard` for a cookie. Answers what went wrong; "" nothing.
export async function sessionOpen(code) {
    const { status, data } = await get("/dashboard/session", { method: "POST", body: new URLSearchParams({ code }) });
    return status === 200 ? "" : data.message ?? data.error ?? "refused";
}

async function poll(s) {
    const path = s.path;
    s.asked = now();
    try {
        const { status, data } = await get(path);
        live.goneSince = 0;
        live.answeredAt = now();
        if (s.path !== path) {
            return; // another actor was chosen meanwhile
        }
        s.denied = status === 401 || status === 403;
        s.why = status === 200 ? "" : data.message ?? data.error ?? String(status);
        if (status === 200) {
            s.data = data;
            s.at = now();
        } else if (status === 404) {
            s.data = null;
            s.at = now(); // that it is not there is an answer
        }
    } catch (error) {
        s.why = error.name === "TimeoutError" ? "no answer" : "cannot be reached";
        live.goneSince = live.goneSince || now();
    }
}

// Point a source elsewhere and ask at once; "": it rests.
export function aim(s, path) {
    if (s.path !== path) {
        Object.assign(s, { path, at: 0, asked: 0, data: null, why: "", denied: false });
    }
}

// Ask for these at the next turn.
export function hurry(...list) {
    for (const s of list) {
        s.asked = 0;
    }
}

function rateKeep() {
    const { status } = sources;
    if (status.data && status.why === "" && live.rates.at(-1)?.at !== status.at) {
        live.rates.push({ at: status.at, time: Date.now(), rate: status.data.messagesPerSecond ?? 0 });
        live.rates.splice(0, live.rates.length - 1800);
    }
}

// live-L1.
async function turn() {
    if (!document.hidden) {
        const due = Object.values(sources).filter((s) => s.path !== "" && (s.asked === 0 || now() - s.asked >= s.everyMs));
        for (const s of due) {
            await poll(s);
            rateKeep();
            changed();
            if (live.goneSince !== 0) {
                break; // one question is enough to learn that nobody answers
            }
        }
    }
    setTimeout(turn, 500);
}

// live-L2.
function eventAdd(id, event) {
    if (event.snapshot || (id !== "" && seen.has(id))) {
        return false;
    }
    seen.add(id);
    live.events.push({ id, event });
    live.events.sort((a, b) => (a.event.time < b.event.time ? -1 : a.event.time > b.event.time ? 1 : 0));
    for (const old of live.events.splice(0, live.events.length - EVENTS_MAX)) {
        seen.delete(old.id);
    }
    return true;
}

async function logRead() {
    try {
        const { status, data } = await get(`/cluster/event-log?${QUERY}`);
        if (status === 200) {
            live.complete = data.complete;
            data.events.forEach(({ id, event }) => eventAdd(id, event));
            changed();
        }
    } catch { /* the polls say that nobody answers; the stream comes back and asks again */ }
}

// The browser comes back by itself with the id of the last event that it has. Where it gives up (another status than 200),
// the log of the node fills the gap.
function follow() {
    const stream = new EventSource(`/cluster/domain-events?${QUERY}`);
    stream.addEventListener("open", () => {
        live.follows = true;
        changed();
    });
    stream.addEventListener("Reset", () => {
        hurry(sources.status, sources.members);
        logRead();
    });
    for (const type of TYPES) {
        stream.addEventListener(type, (message) => {
            if (eventAdd(message.lastEventId, JSON.parse(message.data))) {
                hurry(sources.status, sources.members);
                changed();
            }
        });
    }
    stream.addEventListener("error", () => {
        live.follows = false;
        if (stream.readyState === EventSource.CLOSED) {
            setTimeout(follow, 5000);
        }
        changed();
    });
}

export function start(onChange) {
    changed = onChange;
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) {
            hurry(...Object.values(sources));
        }
    });
    follow();
    turn();
}
