// What is known of a live session, as a value: an event goes in, another value comes out. Nothing
// here knows the page, so that it runs anywhere.

/** Before the first event. */
export const UNKNOWN = Object.freeze({
  isAnswering: false,
  /** The speaker who was asked last. */
  asked: null,
  /** Open permission requests, oldest first. */
  requests: [],
  /** Answers to earlier ones, by tool call. */
  verdicts: {},
  /** Agent, model, context and the person who writes. */
  floor: {},
  permissions: { mode: null, always: [] },
  /** Messages that wait in the session and drafts, whichever client wrote them. */
  unsent: [],
  /** Who speaks next in a team, or the round of a pair. */
  queue: '',
  /** Display names by id. */
  names: {},
  /** Whether the last turn ended without an answer. */
  hasFailed: false,
});

/** Returns the state after an event. */
export function next(state, event) {
  const change = CHANGES[event.what];
  return change ? { ...state, ...change(event, state) } : state;
}

/** Returns the state of a session whose events begin anew. */
export function renewed(state) {
  return { ...state, requests: [], isAnswering: false };
}

/** Returns the state with the names of the speakers of entries. */
export function named(state, entries) {
  const names = entries.filter(({ speaker }) => speaker).map(({ speaker }) => [speaker.name, speaker.display]);
  return { ...state, names: { ...Object.fromEntries(names), ...state.names } };
}

/** Returns what the composer says of a session, or `null` if it waits for a message. */
export function status({ isAnswering, requests, asked }) {
  if (!isAnswering) return null;
  if (requests.length) return 'Waiting for your answer';
  return `${asked?.displayName ?? asked?.name ?? 'The agent'} is answering`;
}

/** Returns what the list says of a session. */
export function phase({ isAnswering, requests }) {
  if (!isAnswering) return 'waiting';
  return requests.length ? 'asking' : 'answering';
}

/** Returns why a permission request could not be answered, if another client was first. */
export function answeredElsewhere({ verdicts }, toolId) {
  const verdict = verdicts[toolId];
  if (!verdict) return 'Already answered elsewhere';
  return verdict === 'no' ? 'Already denied elsewhere' : 'Already allowed elsewhere';
}

function floorOf({ floor }, state) {
  const waiting = floor.waiting.map(({ name, intent }) => `${name} (${intent})`).join(', ');
  return {
    ...renewed(state),
    floor,
    asked: floor.agent ? { name: floor.agent } : null,
    queue: floor.unfinished ? `Unfinished: ${floor.unfinished.text}` : waiting && `Queue: ${waiting}`,
  };
}

function roundOf({ event }) {
  const round = event.round;
  if (!round) return {};
  const left = round.remaining === 'unlimited' ? '' : `, ${round.remaining.calls} left`;
  return { queue: `Round ${round.round} · worker calls: ${round.worker_calls}${left}` };
}

function queueOf({ output }, { names }) {
  if (!output.queue) return {};
  const pending = output.queue.pending.map(({ request }) => `${names[request.target] ?? request.target} (${request.intent})`);
  return { queue: pending.length ? `Queue: ${pending.join(', ')}` : '' };
}

/** What each event changes. */
const CHANGES = {
  opened: floorOf,
  over: floorOf,
  not_opened: () => ({ isAnswering: false }),
  began: () => ({ isAnswering: true, hasFailed: false }),
  failed: () => ({ hasFailed: true }),
  asked: ({ speaker }, { names }) => ({ isAnswering: true, asked: speaker, names: { ...names, [speaker.id]: speaker.displayName } }),
  routed: queueOf,
  pair: roundOf,
  may_i: ({ request }, { requests }) => ({
    isAnswering: true,
    requests: [...requests.filter(({ call }) => call.id !== request.call.id), request],
  }),
  settled: ({ tool_id: id, verdict }, { requests, verdicts }) => ({
    requests: requests.filter(({ call }) => call.id !== id),
    verdicts: { ...verdicts, [id]: verdict },
  }),
  permissions: ({ state }) => ({ permissions: state }),
  unsent: ({ messages }) => ({ unsent: messages }),
  gone: (_, state) => renewed(state),
};

/**
 * Returns the messages to show below the transcript: those that wait in the session and its drafts, and
 * those of this page that it does not tell of.
 */
export function pending({ unsent }, own) {
  const isKnown = ({ client_id: id }) => unsent.some((message) => message.client_id === id);
  const told = unsent.map(({ client_id, text, is_queued: isQueued }) => ({
    client_id, text, state: isQueued ? 'queued' : 'draft', isTold: true, reason: own.find((item) => item.client_id === client_id)?.reason,
  }));
  return [...told, ...own.filter((item) => !isKnown(item))];
}

/** Returns what an event tells the user, as `{tone, text}`. */
export function remarks(event) {
  return REMARKS[event.what]?.(event).filter(Boolean) ?? [];
}

const note = (text) => ({ tone: 'note', text });
const warning = (text) => ({ tone: 'warning', text });

const REMARKS = {
  opened: ({ floor }) => [floor.unsaved && warning('Some messages could not be saved and are held in memory.')],
  over: ({ floor }) => [floor.unsaved && warning('Some messages could not be saved and are held in memory.')],
  not_opened: ({ error }) => [{ tone: 'error', text: error.hint ? `${error.message} (${error.hint})` : error.message }],
  held: ({ message }) => [warning(`Not saved yet, held in memory: ${message.content.slice(0, 200)}`)],
  failed: ({ error }) => [error.hint && { tone: 'error', text: `hint: ${error.hint}` }],
  routed: ({ output: { unresolved, next: turn } }) => [
    unresolved && warning(`No member is called ${unresolved.names.join(', ')}. Members: ${unresolved.available.join(', ')}`),
    turn?.paused && note(`Paused after ${turn.paused.rounds} rounds: the next message is yours.`),
  ],
  pair: ({ event }) => [
    event.chose && note(`The worker uses ${event.chose}.`),
    event.correcting && note(`The instructor is asked to correct its reply (attempt ${event.correcting.attempt}).`),
    event.worker_failed && warning(`The worker failed: ${event.worker_failed.message}`),
  ],
  notice: ({ tone, text }) => [{ tone, text }],
  // How to resume in a terminal is of no use here.
  gone: ({ farewell }) => farewell.told.filter(({ text }) => !text.startsWith('Resume: ')),
};
