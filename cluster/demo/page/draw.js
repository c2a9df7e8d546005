// draw.js - the pictures of a demonstration, made of SVG elements: threads around actors, messages between them.
const SVG = 'http://www.w3.org/2000/svg';
const OUTER = 225, INNER = 175, OUTSIDE = 200;
export const colours = ['#4f8fd0', '#e08a3c', '#57a85a', '#a76cc4', '#c45d7d', '#8c8c3a', '#3aa6a0', '#d0b13f'];

export function make(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

// Place number `at` of `count`, clockwise from the left.
function place(at, count, radius) {
    const angle = Math.PI + 2 * Math.PI * at / Math.max(1, count);
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
}

// Where each actor stands; order[i] is the place of actor i.
function places(count, order, radius) {
    return Array.from({ length: count }, (_, i) => place(order[i] ?? i, count, radius));
}

function line(at, from, to, of) {
    const [x1, y1] = from === OUTSIDE ? [0, 0] : at[from], [x2, y2] = at[to];
    return make('line', { x1, y1, x2, y2, class: of });
}

export function stage(svg, now, order, shift) {
    const at = places(now.actorList.length, order, INNER), parts = [];
    const size = Math.max(3, Math.min(14, 2.4 * INNER / Math.max(1, now.actorList.length)));
    for (const [from, to, count] of now.links) {
        if (!at[to]) continue;
        const [x, y] = at[to];
        parts.push(line(at, from, to, 'waits'));
        parts.push(make('circle', { cx: x, cy: y, r: Math.min(size + 8, size + Math.sqrt(count)), class: 'end' }));
    }
    for (const [from, to] of now.fresh) {
        if (at[to] && (from === OUTSIDE || at[from])) parts.push(line(at, from, to, 'fresh'));
    }
    now.actorList.forEach(([name, kind, waiting, thread], i) => {
        const [cx, cy] = at[i];
        const words = `${name}, actor ${i}: ${now.kinds[kind]}, ${waiting} waiting, ${thread < 0 ? 'idle' : 'busy on thread ' + thread}`;
        parts.push(make('circle', { cx, cy, r: size, fill: colours[(kind + shift) % colours.length], class: thread < 0 ? 'actor' : 'actor busy' },
            make('title', {}, words)));
    });
    now.threadList.forEach(([actor, permille], i) => {
        const [x, y] = place(i, now.threadList.length, OUTER), busy = actor >= 0;
        parts.push(make('rect', { x: x - 8, y: y - 8, width: 16, height: 16, class: busy ? 'thread busy' : 'thread' },
            make('title', {}, `thread ${i}: ${busy ? 'runs actor ' + actor : 'idle'}, busy ${Math.round(permille / 10)} %`)));
        if (busy) {
            parts.push(make('circle', { cx: x, cy: y, r: 4, fill: colours[(now.actorList[actor]?.[1] + shift) % colours.length] }));
            const [tx, ty] = place(i, now.threadList.length, OUTER + 20);
            parts.push(make('text', { x: tx, y: ty }, String(actor)));
        }
    });
    svg.replaceChildren(...parts);
}

export function balance(svg, accepts, completions) {
    const most = Math.max(accepts, completions, 1), part = 95 * (accepts - completions) / most;
    svg.replaceChildren(make('line', { x1: 100, x2: 100, y1: 0, y2: 16, class: 'axis' }),
        make('rect', { x: part < 0 ? 100 + part : 100, y: 3, width: Math.max(1, Math.abs(part)), height: 10, class: part > 0 ? 'over' : 'under' }));
}

export function backlog(svg, counts) {
    const most = Math.max(1, ...counts), step = 520 / Math.max(1, counts.length - 1);
    const points = counts.map((n, i) => `${i * step},${76 - 70 * n / most}`).join(' ');
    svg.replaceChildren(make('line', { x1: 0, x2: 520, y1: 76, y2: 76, class: 'axis' }), make('polygon', { points: `0,76 ${points} ${(counts.length - 1) * step},76`, class: 'area' }));
}

export function snapshot(past, order) {
    const at = places(past.actors, order, 40), parts = [];
    for (const [from, to] of past.links) {
        if (at[to] && (from === OUTSIDE || at[from])) parts.push(line(at, from, to, 'waits'));
    }
    for (const [cx, cy] of at) parts.push(make('circle', { cx, cy, r: 2, class: 'dot' }));
    return make('svg', { viewBox: '-50 -50 100 100', role: 'img', 'aria-label': `after ${past.step} s ${past.waiting} messages waited` }, ...parts);
}
