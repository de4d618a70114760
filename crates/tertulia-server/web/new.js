// The page for a new session: a chat, a team or a pair, with its agents, model and first message.

import { complain, element, failed, ghosts, iconButton } from './dom.js';
import { agentSelect, labelled, modelField, policySelect } from './dialogs.js';
import { draft, keepDraft } from './store.js';

const KINDS = [['chat', 'Chat', 'One agent'], ['team', 'Team', 'Several agents and people'], ['pair', 'Pair', 'An instructor and a worker']];
/** The draft of a first message is kept under this name. */
const DRAFT = 'new';

/** Shows the form in `app`. Returns its element, and what ends it. */
export function newSession(app) {
  const body = element('div', { class: 'column new' }, element('ul', { class: 'rows', 'aria-label': 'Loading' }, ...ghosts(4)));
  const left = new AbortController();
  const load = () => app.connection.request('catalog', {}, { signal: left.signal }).then((catalog) => {
    const shown = form(app, catalog);
    body.replaceWith(shown);
    shown.querySelector('input:checked').focus();
  }).catch((error) => body.replaceChildren(failed(error, load)));
  load();
  const page = element('div', { class: 'page' },
    element('header', { class: 'bar' }, iconButton('back', 'Back to the list', () => app.go('/'), { class: 'quiet back' }),
      element('div', { class: 'heading' }, element('h1', {}, 'New session'))), body);
  return { node: page, close: () => left.abort() };
}

function form(app, { agents, teams, folders = [] }) {
  const usual = (agents.find((agent) => agent.is_default && agent.ready) ?? agents.find((agent) => agent.ready))?.name;
  const agent = agentSelect(agents, usual);
  const model = modelField(app.connection, agent);
  const usable = teams.filter((one) => !one.reason);
  const team = element('input', { list: 'teams', value: usable[0]?.name, placeholder: 'tertulia team init writes an example', autocapitalize: 'off', spellcheck: 'false' });
  const teamList = element('datalist', { id: 'teams' }, ...usable.map(({ name, members }) => element('option', { value: name }, members.join(', '))));
  const instructor = agentSelect(agents, usual);
  const worker = agentSelect(agents, usual);
  const rounds = element('input', { type: 'number', min: '1', max: '1000', placeholder: 'no limit', inputmode: 'numeric' });
  const policy = policySelect('ask');
  // What the user does not choose is a default, and no word of theirs.
  const chosenPolicy = () => (policy.dataset.chosen ? policy.value : undefined);
  policy.addEventListener('change', () => { policy.dataset.chosen = 'yes'; });
  const folder = element('select', {}, ...folders.map((path) => element('option', { value: path }, path)));
  const text = element('textarea', { rows: '4', placeholder: 'Optional', 'aria-label': 'First message' });
  text.value = draft(DRAFT);
  text.addEventListener('input', () => keepDraft(DRAFT, text.value));
  const parts = {
    chat: [labelled('Agent', agent), labelled('Model', model)],
    team: [labelled('Name or path of a team file', team), teamList],
    pair: [labelled('Instructor', instructor), labelled('Worker', worker), labelled('Most worker calls', rounds)],
  };
  const fields = element('div', { class: 'fields' });
  const kinds = KINDS.map(([kind, name, words]) => element('label', { class: 'kind' },
    element('input', { type: 'radio', name: 'kind', value: kind, checked: kind === 'chat', onchange: () => fields.replaceChildren(...parts[kind]) }),
    element('b', {}, name), element('span', { class: 'facts' }, words)));
  fields.replaceChildren(...parts.chat);

  const request = (kind) => ({
    chat: { agent: agent.value, model: model.firstChild.value.trim() || undefined },
    team: { team: team.value.trim() },
    pair: { instructor: instructor.value, worker: worker.value, max_rounds: Number(rounds.value) || undefined },
  })[kind];

  const create = async (event) => {
    event.preventDefault();
    const button = event.currentTarget.querySelector('.primary');
    const kind = new FormData(event.currentTarget).get('kind');
    button.disabled = true;
    try {
      const fieldsOf = { kind, approve: chosenPolicy(), cwd: folder.selectedIndex > 0 ? folder.value : undefined, ...request(kind) };
      const { session_id: id } = await app.connection.request('session_create', fieldsOf, { again: false });
      app.created.add(id);
      if (text.value.trim()) app.outbox.add(id, text.value, 0);
      keepDraft(DRAFT, '');
      app.list.refresh();
      app.replace(`/s/${id}`);
    } catch (error) {
      complain(error);
      button.disabled = false;
    }
  };
  return element('form', { class: 'column new', onsubmit: create },
    element('fieldset', { class: 'kinds' }, element('legend', { class: 'unseen' }, 'Kind'), ...kinds),
    fields, folders.length > 1 && labelled('Folder', folder), labelled('Tool policy', policy), labelled('First message', text),
    element('div', { class: 'buttons' }, element('button', { class: 'primary' }, 'Create session')));
}
