// Statistics: totals, and plots drawn as SVG. Shapes have attributes and classes only, so the style
// sheet colours them.

import { compact, counted, element, failed, ghosts, iconButton, svg } from './dom.js';

const SPANS = [['7d', '7 days'], ['30d', '30 days'], ['365d', 'a year'], ['', 'all time']];
const DAY = 86_400_000;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** Shows the statistics in `app`. Returns their element, and what ends them. */
export function statistics(app) {
  const body = element('div', { class: 'column stats' });
  const select = element('select', { 'aria-label': 'Period', onchange: () => show() },
    ...SPANS.map(([value, words]) => element('option', { value, selected: value === '30d' }, words)));
  let underway = new AbortController();
  const show = async () => {
    underway.abort();
    underway = new AbortController();
    const { signal } = underway;
    const since = select.value || undefined;
    const ask = (by) => app.connection.request('stats', { since, by }, { signal }).then((reply) => reply.stats);
    body.replaceChildren(element('ul', { class: 'rows', 'aria-label': 'Loading' }, ...ghosts(5)));
    try {
      const [days, models, agents] = [await ask('day'), await ask('model'), await ask('agent')];
      body.replaceChildren(totals(days.totals),
        section('Messages by day', columns(everyDay(days.by.rows.map((row) => ({ label: row.key, value: row.messages }))))),
        section('Tokens by model', bars(models.by.rows.map((row) => ({ label: row.key, value: sum(row.tokens) })))),
        section('Messages by agent', bars(agents.by.rows.map((row) => ({ label: row.key, value: row.messages })))),
        section('Tools', bars(days.tools.map((tool) => ({ label: tool.name, value: tool.calls })))),
        section('Busiest hours', heat(days.heat)));
    } catch (error) {
      body.replaceChildren(failed(error, show));
    }
  };
  show();
  const page = element('div', { class: 'page' },
    element('header', { class: 'bar' }, iconButton('back', 'Back to the list', () => app.go('/'), { class: 'quiet back' }),
      element('div', { class: 'heading' }, element('h1', {}, 'Statistics')), select),
    body);
  return { node: page, close: () => underway.abort() };
}

/** Adds the days without messages. */
export function everyDay(rows) {
  const known = new Map(rows.map((row) => [row.label, row]));
  const days = rows.map(({ label }) => Date.parse(`${label}T00:00:00Z`));
  if (!days.length || days.some(Number.isNaN)) return rows;
  const filled = [];
  for (let day = Math.min(...days); day <= Math.max(...days); day += DAY) {
    const label = new Date(day).toISOString().slice(0, 10);
    filled.push(known.get(label) ?? { label, value: 0 });
  }
  return filled;
}

const sum = (tokens) => tokens.input + tokens.output;

function totals({ sessions, messages, tokens, cost }) {
  const fact = (value, label) => element('div', {}, element('dd', {}, value), element('dt', {}, label));
  return element('dl', { class: 'totals' }, fact(compact(sessions), 'sessions'), fact(compact(messages), 'messages'),
    fact(compact(tokens.input), 'tokens in'), fact(compact(tokens.output), 'tokens out'),
    fact(cost.usd === null ? '–' : `$${cost.usd.toFixed(2)}`, cost.unknown_models.length ? 'known cost' : 'cost'));
}

function section(title, plot) {
  return element('section', { 'aria-label': title }, element('h2', {}, title), plot ?? element('p', { class: 'dim' }, 'Nothing to show.'));
}

/** Draws upright columns over time. */
function columns(rows) {
  if (!rows.length) return null;
  const most = Math.max(1, ...rows.map((row) => row.value));
  const step = 720 / Math.max(14, rows.length);
  const shapes = rows.map(({ label, value }, at) => {
    const height = (value / most) * 120;
    return svg('rect', { class: 'column-bar', x: at * step, y: 130 - height, width: Math.max(1, step - 2), height, rx: 2 },
      svg('title', {}, `${label}: ${value}`));
  });
  return svg('svg', { viewBox: '0 0 720 152', role: 'img', 'aria-label': `${counted(rows.length, 'day')}, at most ${most}` },
    ...shapes, svg('line', { class: 'axis', x1: 0, x2: 720, y1: 130.5, y2: 130.5 }),
    svg('text', { x: 0, y: 147 }, rows[0].label),
    rows.length > 1 && svg('text', { x: Math.min(720, rows.length * step), y: 147, 'text-anchor': 'end' }, rows.at(-1).label));
}

/** Draws lying bars with their labels, longest first. */
function bars(rows) {
  const shown = rows.filter((row) => row.value > 0).sort((a, b) => b.value - a.value).slice(0, 8);
  if (!shown.length) return null;
  const most = shown[0].value;
  return element('ul', { class: 'bars' }, ...shown.map(({ label, value }) => element('li', {},
    element('span', { class: 'label', title: label }, label || 'unknown'),
    svg('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      svg('rect', { class: 'column-bar', width: Math.max(0.5, (value / most) * 100), height: 8 })),
    element('span', { class: 'number' }, compact(value)))));
}

/** Draws the hours of the week, darker with more messages. */
function heat(week) {
  const most = Math.max(0, ...(week ?? []).flat());
  if (!most) return null;
  const cells = week.flatMap((hours, day) => hours.map((value, hour) => svg('rect', {
    class: 'cell', x: 40 + hour * 28, y: day * 20, width: 26, height: 18, rx: 3, 'fill-opacity': value ? 0.15 + 0.85 * (value / most) : 0.05,
  }, svg('title', {}, `${WEEKDAYS[day]} ${hour}:00: ${value}`))));
  return svg('svg', { viewBox: '0 0 720 160', role: 'img', 'aria-label': 'Messages by weekday and hour' }, ...cells,
    ...WEEKDAYS.map((day, at) => svg('text', { x: 0, y: at * 20 + 13 }, day)),
    ...[0, 6, 12, 18].map((hour) => svg('text', { x: 40 + hour * 28, y: 156 }, `${hour}:00`)));
}
