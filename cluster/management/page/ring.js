// ring.js - pictures: the members on a ring with who accuses whom, and the last hour as bars. Each says nothing that the
// tables beside it do not say, so they are one image each to a screen reader.
import { s } from "./draw.js";

const SIZE = 640, MIDDLE = SIZE / 2, LABELS_MAX = 32;
const HOUR_MS = 3600000, BARS = 60;

const place = (index, count, radius) => {
    const angle = (2 * Math.PI * index) / Math.max(count, 1) - Math.PI / 2;
    return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
};

function accusation(from, to, dot) {
    const [x1, y1] = from, [x2, y2] = to;
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const cut = (dot + 6) / length; // the arrow ends at the rim of the dot
    return s("line", { class: "accuses", x1: x1 + (x2 - x1) * cut, y1: y1 + (y2 - y1) * cut, x2: x2 - (x2 - x1) * cut,
        y2: y2 - (y2 - y1) * cut, "marker-end": "url(#arrow)" });
}

export function ring(reply, short) {
    const members = reply.members, count = members.length;
    const radius = count > LABELS_MAX ? MIDDLE - 30 : MIDDLE - 110;
    const dot = count > LABELS_MAX ? 6 : 12;
    const at = new Map(members.map((m, index) => [m.node, place(index, count, radius)]));
    const lines = [], marks = [];
    for (const { node, observedBy } of reply.unreachable) {
        for (const observer of observedBy) {
            if (at.has(node) && at.has(observer) && node !== observer) {
                lines.push(accusation(at.get(observer), at.get(node), dot));
            }
        }
    }
    members.forEach((m, index) => {
        const [x, y] = at.get(m.node);
        const state = !m.reachable || m.status === "Down" ? "lost" : m.status === "Up" ? "" : "passing";
        marks.push(s("circle", { class: `dot ${state}`, cx: x, cy: y, r: dot }));
        if (m.node === reply.selfNode) {
            marks.push(s("circle", { class: "self", cx: x, cy: y, r: dot + 4 }));
        }
        if (m.node === reply.leader || !m.reachable) {
            marks.push(s("text", { x, y: y + 4, "text-anchor": "middle" }, m.reachable ? "L" : "✕"));
        }
        if (count <= LABELS_MAX) {
            const [lx, ly] = place(index, count, radius + 22);
            const side = lx > MIDDLE + 5 ? "start" : lx < MIDDLE - 5 ? "end" : "middle";
            marks.push(s("text", { x: lx, y: ly + 4, "text-anchor": side }, short(m.node)));
        }
    });
    const lost = reply.unreachable.length, tall = 2 * (radius + 45);
    return s("svg", { class: "ring", viewBox: `0 ${MIDDLE - tall / 2} ${SIZE} ${tall}`, role: "img",
        "aria-label": `${count} members on a ring, ${lost} unreachable; the table has the same` },
    s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        s("path", { class: "head", d: "M0 0 L8 4 L0 8 z" }))),
    s("circle", { class: "rim", cx: MIDDLE, cy: MIDDLE, r: radius }), ...lines, ...marks);
}

const kindOf = (type) => (type === "DowningDecision" || type === "ClusterShuttingDown" ? "decision"
    : type === "UnreachableMember" || type === "MemberDowned" ? "lost" : "change");

// Events of the last hour, a bar a minute; above it the messages a second since the page was opened.
export function timeline(events, rates, wide) {
    const end = Date.now(), width = wide, height = 120, base = 96, step = width / BARS;
    const bars = Array.from({ length: BARS }, () => ({ change: 0, lost: 0, decision: 0 }));
    for (const { event } of events) {
        const minute = Math.floor((Date.parse(event.time) - (end - HOUR_MS)) / 60000);
        if (minute >= 0 && minute < BARS) {
            bars[minute][kindOf(event.type)]++;
        }
    }
    const most = Math.max(4, ...bars.map((b) => b.change + b.lost + b.decision));
    const shapes = [s("line", { class: "axis", x1: 0, y1: base, x2: width, y2: base })];
    bars.forEach((bar, index) => {
        let y = base;
        for (const kind of ["change", "lost", "decision"]) {
            const tall = (bar[kind] / most) * 80;
            y -= tall;
            if (tall > 0) {
                shapes.push(s("rect", { class: `bar-${kind}`, x: index * step + 1, y, width: step - 2, height: tall }));
            }
        }
    });
    const peak = Math.max(1, ...rates.map((r) => r.rate));
    const points = rates.filter((r) => end - r.time < HOUR_MS)
        .map((r) => `${(width * (1 - (end - r.time) / HOUR_MS)).toFixed(1)},${(base - (r.rate / peak) * 80).toFixed(1)}`);
    if (points.length > 1) {
        shapes.push(s("polyline", { class: "rate", points: points.join(" ") }));
    }
    for (const minutes of [60, 45, 30, 15, 0]) {
        const x = width * (1 - minutes / 60);
        shapes.push(s("text", { x, y: 114, "text-anchor": minutes === 60 ? "start" : minutes === 0 ? "end" : "middle" },
            minutes === 0 ? "now" : `-${minutes} min`));
    }
    const total = bars.reduce((sum, b) => sum + b.change + b.lost + b.decision, 0);
    return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
        "aria-label": `${total} events in the last hour; the log has them` }, ...shapes);
}
