// A memory provider in JavaScript whose notes are at a service: `fetch`, an address from the configuration, a secret.
//
// The service is invented; put yours in its place. Its routes, below the address:
//
//   PUT, GET, DELETE  /companies/COMPANY/notes/ID                one note; 404: there is none
//   GET               /companies/COMPANY/notes?after=ID&limit=N  { notes, more }, in the order of their ids
//   GET               /companies/COMPANY/search?q=TEXT&limit=N   { notes }, best first, each with a score from 0 to 1
//
// Each also takes `agent`, `subject` and `namespace`. A note that was put with another value of one of them is not there
// for a request, and cannot be put: 409.
//
// What each call must do is stated in `wit/provider.wit`. A thrown object is the contract's error; a thrown `Error` is a
// trap.

import { config } from 'paperclip:memory/binding@0.1.0';
import { remainingMs } from 'paperclip:memory/call@0.1.0';

const KEY = 'NOTES_API_KEY';
/** The share of what is left of a call after which a request takes too long. The rest is for the answer. */
const SHARE = 0.8;
/** The most records of one call. Each is a request; by default a binding may send 16 at once and 64 in a call. */
const MOST = 16;

function invalid(field, message) {
  throw { tag: 'invalid-request', val: { field, message } };
}

const jsonOf = (text) => (text === undefined ? undefined : JSON.parse(text));

// Requests.

/** What a promise gives, unless that takes too long. This engine heeds `AbortSignal` only for requests without a body. */
async function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('TimeoutError')), Number(remainingMs()) * SHARE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** One request for a scope: what the service answers, or nothing for a note that is not there. */
async function request(scope, method, path, { query, note } = {}) {
  const what = `${method} ${path}`;
  const fail = (tag, message) => {
    throw { tag, val: `${what}: ${message}` };
  };
  const failForNow = (tag, message, seconds) => {
    const retryAfterMs = seconds > 0 ? BigInt(Math.ceil(seconds * 1000)) : undefined;
    throw { tag, val: { message: `${what}: ${message}`, retryAfterMs } };
  };
  const partition = { agent: scope.agentId, subject: scope.subjectId, namespace: scope.namespace };
  const members = Object.entries({ ...query, ...partition }).filter(([, value]) => value !== undefined);
  const base = JSON.parse(config()).url.replace(/\/+$/, '');
  const address = `${base}/companies/${encodeURIComponent(scope.companyId)}/${path}?${new URLSearchParams(members)}`;
  // The host puts in the value, on the way out: it never enters the sandbox.
  const headers = { 'content-type': 'application/json', authorization: `Bearer {{secret:${KEY}}}` };
  const body = note && JSON.stringify(note);
  const exchange = async () => {
    const response = await fetch(address, { method, headers, body });
    return [response, await response.text()];
  };
  let response, text;
  try {
    [response, text] = await inTime(exchange());
  } catch (error) {
    // Refused by the host, not reached, broken off, or too slow: the operation's log has the reason.
    failForNow('unavailable', error.message);
  }
  const { status } = response;
  const told = `the service answers ${status}`;
  const seconds = Number(response.headers.get('retry-after'));
  if (status === 404 && query === undefined && note === undefined) return undefined;
  if (status === 401 || status === 403) fail('unauthorized', told);
  if (status === 409) invalid(undefined, `${what}: another agent, subject or namespace has this id; choose another one`);
  if (status === 429) failForNow('rate-limited', told, seconds);
  if (status >= 500) failForNow('unavailable', told, seconds);
  if (!response.ok) fail('internal', told);
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    fail('internal', 'the answer is not JSON');
  }
}

/** All requests at once. It waits for each of them, also where one has failed. */
async function together(requests) {
  const ended = await Promise.allSettled(requests);
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return ended.map(({ value }) => value);
}

const pathOf = (id) => `notes/${encodeURIComponent(id)}`;
const put = (scope, id, note) => request(scope, 'PUT', pathOf(id), { note });

function snippet({ id, text, summary, source, metadata, score, created, changed, expires }) {
  return {
    id,
    text,
    score: score === undefined ? { tag: 'none' } : { tag: 'similarity', val: Math.min(Math.max(score, 0), 1) },
    summary,
    source,
    metadata: metadata && JSON.stringify(metadata),
    createdAt: created,
    updatedAt: changed,
    expiresAt: expires,
    scope: undefined,
  };
}

// The exported functions. One that waits is `async`; for the host it is a call like any other.

function describe() {
  const url = { type: 'string', description: 'Where the service is, such as https://notes.example.com', pattern: '^https?://' };
  return {
    providerKey: 'notes-javascript-fetch',
    name: 'Notes at a service, in JavaScript',
    version: '0.1.0',
    summary: 'Notes at a service; an example of fetch in JavaScript',
    configSchema: JSON.stringify({ type: 'object', properties: { url }, required: ['url'], additionalProperties: false }),
    capabilities: { providerManagedExtraction: false, asyncExtraction: false },
    // Nothing is kept between calls, so that instances do not disturb each other.
    maxConcurrency: 4,
    permissions: [
      {
        permission: { tag: 'http', val: { origin: '{{config:/url}}', methods: ['GET', 'PUT', 'DELETE'] } },
        reason: 'The notes are there',
        optional: false,
      },
      { permission: { tag: 'secret', val: KEY }, reason: 'The key of the service', optional: false },
    ],
    declarations: {
      maxUpsert: MOST,
      maxForget: MOST,
      // The service cannot look for metadata.
      leftToHost: [{ tag: 'metadata-filter' }],
      // Each record is a request of its own.
      exceptions: [{ tag: 'all-or-none-upserts' }],
    },
  };
}

function validateConfig(config) {
  const { url } = JSON.parse(config);
  if (typeof url !== 'string' || !URL.canParse(url)) throw [{ pointer: '/url', message: 'is not a URL' }];
}

async function capture({ operationId, scope, source, payload, metadata }) {
  const said = payload.turns.map(({ role, text }) => `${role}: ${text}`).join('\n\n');
  const text = payload.text ?? (said || payload.object);
  if (text === undefined) {
    invalid('payload.text', 'the payload has neither a text nor turns nor an object; send one of them');
  }
  // The id is made of the operation's: when the same event comes again, the same note is put again.
  const id = `${operationId}.0`;
  await put(scope, id, { text, source, metadata: { ...jsonOf(payload.metadata), ...jsonOf(metadata) } });
  return { records: [id], jobs: [], usage: [] };
}

async function upsertRecords({ operationId, scope, source, records }) {
  const ids = records.map(({ id }, n) => id ?? `${operationId}.${n}`);
  const writes = records.map(({ text, summary, metadata, source: own, createdAt, expiresAt }, n) =>
    put(scope, ids[n], {
      text,
      summary,
      metadata: jsonOf(metadata),
      source: own ?? source,
      created: createdAt,
      expires: expiresAt,
    }),
  );
  await together(writes);
  return { records: ids, usage: [] };
}

async function query({ scope, query, topK }) {
  const found = await request(scope, 'GET', 'search', { query: { q: query, limit: topK } });
  return { snippets: found.notes.map(snippet), profileSummary: undefined, usage: [] };
}

async function listRecords({ scope, cursor, limit }) {
  // The cursor is the last id of the page before: it stays valid when that note is removed.
  const found = await request(scope, 'GET', 'notes', { query: { after: cursor, limit } });
  const last = found.more ? found.notes.at(-1) : undefined;
  const continuation = last === undefined ? { tag: 'end' } : { tag: 'next', val: last.id };
  return { items: found.notes.map(snippet), continuation, usage: [] };
}

async function getRecord(id, scope) {
  const note = await request(scope, 'GET', pathOf(id));
  return { snippet: note && snippet(note), usage: [] };
}

async function forget({ ids, scope }) {
  const gone = await together(ids.map((id) => request(scope, 'DELETE', pathOf(id))));
  const outcomes = ids.map((id, n) => ({ id, effect: gone[n] === undefined ? 'not-found' : 'hard' }));
  return { outcomes, usage: [] };
}

export const provider = { describe, validateConfig, capture, upsertRecords, query, listRecords, getRecord, forget };
