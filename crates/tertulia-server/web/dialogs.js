// Dialogs and menus: questions with a field, the settings of a session, its family, and the help.

import { age, complain, counted, element, iconButton } from './dom.js';

/** Tool policies, as users choose them. */
const POLICIES = [
  ['ask', 'ask: read-only tools run, all others ask'],
  ['edits', 'edits: file edits run, too'],
  ['low', 'low: only read-only tools run'],
  ['all', 'all: every tool runs'],
  ['none', 'none: no tool runs'],
];

/** Shows a dialog. Resolves with what `done` is called with, or `null` if it is left. */
function dialog(title, build) {
  return new Promise((resolve) => {
    const shown = element('dialog', { 'aria-label': title });
    let result = null;
    const done = (value) => {
      result = value;
      shown.close();
    };
    shown.append(
      element('header', {}, element('h2', {}, title), iconButton('close', 'Close', () => shown.close())),
      build(done));
    shown.addEventListener('close', () => {
      shown.remove();
      resolve(result);
    });
    shown.addEventListener('click', (event) => event.target === shown && shown.close());
    document.body.append(shown);
    shown.showModal();
  });
}

/** A form that ends a dialog with what `read` returns. */
function form(label, kind, read, done, ...children) {
  return element('form', { onsubmit: (event) => {
    event.preventDefault();
    done(read());
  } }, ...children, element('div', { class: 'buttons' }, element('button', { class: kind }, label)));
}

export function labelled(label, field) {
  return element('label', {}, element('span', {}, label), field);
}

export function promptText(title, label, value) {
  return dialog(title, (done) => {
    const field = element('input', { value, maxlength: '200', autofocus: true });
    return form('Save', 'primary', () => field.value.trim(), done, labelled(label, field));
  });
}

export function confirm(question, label) {
  return dialog(question, (done) => form(label, 'danger', () => true, done));
}

/** Asks for tags, and resolves with `{add, remove}`. */
export function chooseTags(tags) {
  return dialog('Tags', (done) => {
    const field = element('input', { value: tags.join(' '), autofocus: true, autocapitalize: 'off', spellcheck: 'false' });
    const read = () => {
      const wanted = field.value.split(/[\s,]+/).filter(Boolean);
      return { add: wanted.filter((tag) => !tags.includes(tag)), remove: tags.filter((tag) => !wanted.includes(tag)) };
    };
    return form('Save', 'primary', read, done, labelled('Tags, separated by spaces', field));
  });
}

/** Returns a choice of agents; those that are not ready say why. */
export function agentSelect(agents, chosen) {
  const option = ({ name, ready, reason }) => element('option', { value: name, disabled: !ready, selected: name === chosen },
    ready ? name : `${name} (${reason ?? 'not ready'})`);
  return element('select', {}, ...agents.map(option));
}

/** Returns a field for a model, with the models that the agent of `select` offers. */
export function modelField(connection, select, value = '') {
  const list = element('datalist', { id: `models-${Math.random().toString(36).slice(2)}` });
  const field = element('input', { list: list.id, value, placeholder: 'default', autocapitalize: 'off', spellcheck: 'false' });
  const load = () => connection.request('models', { agent: select.value }).then(
    ({ models }) => list.replaceChildren(...models.map((model) => element('option', { value: model.name ?? model }))),
    () => list.replaceChildren());
  field.addEventListener('focus', load, { once: true });
  select.addEventListener('change', () => {
    field.value = '';
    load();
  });
  return element('span', { class: 'field' }, field, list);
}

export function policySelect(chosen) {
  return element('select', {}, ...POLICIES.map(([value, words]) => element('option', { value, selected: value === chosen }, words)));
}

/** Changes agent, model and tool policy of a session. */
export async function configure({ connection, sessionId, kind, agent, model, permissions }) {
  const { agents } = await connection.request('catalog');
  const change = await dialog('Session settings', (done) => {
    const select = agentSelect(agents, agent);
    const models = modelField(connection, select, model);
    const policy = policySelect(permissions.mode ?? 'ask');
    policy.autofocus = true;
    const kept = permissions.always.map((key) => element('label', { class: 'check' },
      element('input', { type: 'checkbox', value: key, checked: true }), element('code', {}, key)));
    const read = () => {
      const chosenModel = models.firstChild.value.trim();
      const revoke = kept.map((label) => label.firstChild).filter((box) => !box.checked).map((box) => box.value);
      return {
        agent: kind === 'chat' && select.value !== agent ? select.value : undefined,
        model: kind === 'chat' && chosenModel && chosenModel !== model ? chosenModel : undefined,
        approve: policy.value === permissions.mode ? undefined : policy.value,
        revoke: revoke.length ? revoke : undefined,
      };
    };
    return form('Apply', 'primary', read, done,
      kind === 'chat' && labelled('Agent, from the next turn on', select),
      kind === 'chat' && labelled('Model', models),
      labelled('Tool policy, at once', policy),
      kept.length > 0 && element('fieldset', {}, element('legend', {}, 'Always allowed'), ...kept));
  });
  if (!change || Object.values(change).every((value) => value === undefined)) return;
  await connection.request('session_configure', { session_id: sessionId, ...change }, { again: false }).catch(complain);
}

/** Shows the forks, merges and replays around a session. */
export async function showFamily(app, id) {
  const { sessions } = await app.connection.request('session_family', { session_id: id });
  await dialog('Family tree', (done) => {
    const draw = (session) => element('li', {},
      element('a', { href: `/s/${session.id}`, 'aria-current': session.id === id ? 'page' : null, onclick: () => done(true) }, session.title || 'Untitled'),
      element('span', { class: 'facts' }, ` ${session.parent ? `${session.parent.relation}${session.parent.seq ? ` at ${session.parent.seq}` : ''} · ` : ''}${counted(session.messages, 'message')} · ${age(session.updated_at)}`),
      session.forks?.length > 0 && element('ul', {}, ...session.forks.map(draw)));
    return element('ul', { class: 'family' }, ...sessions.map(draw));
  });
}

/** All keys, for the help. */
const KEYS = [
  ['/', 'Search'], ['j k', 'Next, previous session'], ['Enter', 'Open the session'], ['Esc', 'Cancel the answer; back'],
  ['n', 'New session'], ['i', 'Write a message'], ['[ ]', 'Previous, next message of a person'], ['G', 'Go to the end'],
  ['r', 'Rename'], ['t', 'Tags'], ['f', 'Fork'], ['l', 'Family tree'], ['x', 'Move to trash'], ['u', 'Undo the last change'],
  ['s', 'Statistics'], ['y a n w', 'Allow once, always, deny, deny with words (with Alt while you type)'],
  ['Shift+Enter', 'New line'], ['?', 'This help'],
];

/** Shows all keys. */
export function showHelp() {
  return dialog('Keys', () => element('dl', { class: 'keys' }, ...KEYS.flatMap(([names, words]) => [
    element('dt', {}, ...names.split(' ').map((name) => element('kbd', {}, name))), element('dd', {}, words)])));
}

/** Shows a menu at a button. Items are `[label, run, key]`. */
export function menu(button, items) {
  const shown = element('div', { class: 'menu', popover: 'auto', role: 'menu' },
    ...items.filter(Boolean).map(([label, run, key]) => element('button', { type: 'button', role: 'menuitem', onclick: () => {
      shown.hidePopover();
      run();
    } }, element('span', {}, label), key && element('kbd', {}, key))));
  shown.addEventListener('toggle', (event) => event.newState === 'closed' && shown.remove());
  shown.addEventListener('keydown', (event) => {
    const buttons = [...shown.children];
    const at = buttons.indexOf(document.activeElement);
    const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    const typed = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && event.key.toLowerCase();
    const named = typed && [...buttons.slice(at + 1), ...buttons].find((one) => one.textContent.toLowerCase().startsWith(typed));
    const next = step === undefined ? named : buttons.at(step % buttons.length);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  document.body.append(shown);
  const place = button.getBoundingClientRect();
  shown.style.top = `${place.bottom + 4}px`;
  shown.style.right = `${Math.max(8, innerWidth - place.right)}px`;
  shown.showPopover();
  shown.firstChild.focus();
}
