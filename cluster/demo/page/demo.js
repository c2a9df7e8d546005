// demo.js - asks ten times a second what there is, shows it, and gives the orders of the buttons.
import * as draw from './draw.js';

const PERIOD_MS = 100, LINES_MAX = 1000, GONE_MS = 3000;
const by = (id) => document.getElementById(id);
const store = { get: (k) => { try { return sessionStorage.getItem(k); } catch { return null; } }, set: (k, v) => { try { sessionStorage.setItem(k, v); } catch { /* private */ } } };
const given = new URLSearchParams(location.hash.slice(1)).get('key');
const key = given ?? store.get('key') ?? '';
if (given) { // out of the address, so that it is in no history
    store.set('key', given);
    history.replaceState(null, '', location.pathname);
}

let trace = 0, fresh = 0, order = [], shift = 0, run = -1, past = '', filled = false, answered = 0;

function ask(path, options = {}) {
    return fetch(path, { ...options, headers: { authorization: 'Bearer ' + key, 'content-type': 'application/x-www-form-urlencoded' } });
}

async function tell(path, form) {
    const reply = await ask(path, { method: 'POST', body: new URLSearchParams(form).toString() }).catch(() => null);
    const text = reply ? (await reply.text()).trim() : 'the program has ended';
    by('refused').hidden = Boolean(reply?.ok);
    by('refused').textContent = reply?.ok ? '' : text;
}

function link(state, text) {
    by('link').dataset.state = state;
    if (by('link').textContent !== text) by('link').textContent = text;
}

function controls(now) {
    if (!filled) {
        by('demo').replaceChildren(...now.demos.map(([name, text]) => new Option(`${name}: ${text}`, name)));
        by('demo').value = now.demo || now.demos[0][0];
        by('threads').value = now.demo ? now.threads - now.added : now.threadsNext;
        filled = true;
    }
    const runs = now.state === 'running' || now.state === 'stopping';
    by('start').disabled = runs;
    by('stop').disabled = now.state !== 'running';
    by('add-task').disabled = !runs || now.threads >= by('threads').max;
    by('remove-task').disabled = !runs || now.added === 0;
    by('threads').disabled = by('steps').disabled = by('demo').disabled = runs;
    by('which').textContent = now.demo ? `${now.demo}: ${now.state}, step ${now.step} of ${now.steps}` : 'nothing was started';
}

function rates(now) {
    by('accepts').textContent = `${now.acceptsPerS} messages`;
    by('completions').textContent = `${now.completionsPerS} messages`;
    const difference = now.acceptsPerS - now.completionsPerS;
    by('balance-text').textContent = difference > 0 ? `${difference} more arrive than are handled` : difference < 0 ? `${-difference} more are handled than arrive` : 'balanced';
    draw.balance(by('balance'), now.acceptsPerS, now.completionsPerS);
    by('waiting').textContent = `${now.waiting} messages, of ${now.accepted} so far`;
    const busy = now.threadList.reduce((sum, [, permille]) => sum + permille, 0);
    by('usage').textContent = `${Math.round(busy / 10 / now.threadList.length)} % of ${now.threads}`;
    if (by('bars').children.length !== now.threadList.length) {
        by('bars').replaceChildren(...now.threadList.map(() => { const li = document.createElement('li'); li.append(document.createElement('meter'), ''); return li; }));
    }
    now.threadList.forEach(([actor, permille], i) => {
        const li = by('bars').children[i];
        li.firstChild.value = permille / 1000;
        li.lastChild.textContent = ` ${i}: ${Math.round(permille / 10)} %`;
    });
}

function picture(now) {
    draw.stage(by('stage'), now, order, shift);
    by('picture-text').textContent = `${now.threads} threads, ${now.busy} of them busy; ${now.actors} actors; ${now.waiting} messages wait. ` +
        'Squares are threads, with the number of the actor that they run; circles are actors; lines are waiting messages, red ones are new.';
    const there = [...new Set(now.actorList.map(([, kind]) => kind))];
    if (by('kinds').dataset.there !== there.join() + shift) {
        by('kinds').dataset.there = there.join() + shift;
        by('kinds').replaceChildren(...there.map((kind) => {
            const li = document.createElement('li'), swatch = draw.make('svg', { class: 'swatch', viewBox: '0 0 12 8' });
            swatch.append(draw.make('rect', { width: 12, height: 8, fill: draw.colours[(kind + shift) % draw.colours.length] }));
            li.append(swatch, now.kinds[kind]);
            return li;
        }));
    }
}

function history_(now) {
    const state = `${now.run} ${now.step} ${order.join()}`;
    if (state === past || now.step === 0) return;
    past = state;
    draw.backlog(by('backlog'), now.backlog);
    by('backlog-text').textContent = `At most ${Math.max(...now.backlog)} messages waited, now ${now.backlog.at(-1)}, in ${now.step} seconds.`;
    by('snapshots').replaceChildren(...now.snapshots.map((one) => {
        const li = document.createElement('li');
        li.append(draw.snapshot(one, order), `${one.step} s: ${one.waiting}`);
        return li;
    }));
}

function lines(now) {
    const box = by('lines'), atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
    for (const text of now.trace) {
        const line = document.createElement('span');
        line.textContent = text + '\n';
        if (text.slice(13, 14) === 'W') line.className = 'warning';
        box.append(line);
    }
    while (box.children.length > LINES_MAX) box.firstChild.remove();
    if (atEnd && now.trace.length > 0) box.scrollTop = box.scrollHeight;
}

async function look() {
    try {
        const reply = await ask(`/state?trace=${trace}&fresh=${fresh}`);
        if (reply.status === 401) {
            link('gone', 'No key: open the address that troupe demo has printed');
            return;
        }
        const now = await reply.json();
        if (now.run !== run) { // places are as the actors were made
            run = now.run;
            order = [];
        }
        trace = now.traceNext;
        fresh = now.freshNext;
        answered = performance.now();
        link('live', 'Live');
        controls(now);
        rates(now);
        picture(now);
        history_(now);
        lines(now);
    } catch {
        if (performance.now() - answered > GONE_MS) link('gone', 'The program has not answered for 3 seconds');
    }
    setTimeout(look, PERIOD_MS);
}

by('controls').addEventListener('submit', (event) => {
    event.preventDefault();
    tell('/start', { demo: by('demo').value, threads: by('threads').value, steps: 2 ** by('steps').value });
});
by('stop').addEventListener('click', () => tell('/stop', {}));
by('add-task').addEventListener('click', () => tell('/add-task', {}));
by('remove-task').addEventListener('click', () => tell('/remove-task', {}));
by('steps').addEventListener('input', () => { by('steps-value').textContent = `${2 ** by('steps').value} steps`; });
by('redistribute').addEventListener('click', () => {
    const count = by('stage').querySelectorAll('.actor').length;
    order = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
    }
    shift++;
});
by('transparent').addEventListener('change', () => by('stage').classList.toggle('transparent', by('transparent').checked));
const themes = ['system', 'dark', 'light'];
by('theme').addEventListener('click', () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % 3];
    if (next === 'system') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
    by('theme').textContent = `Theme: ${next}`;
});
look();
