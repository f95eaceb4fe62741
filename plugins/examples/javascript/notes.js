// A memory provider in JavaScript: notes in the binding's storage, found by the words that they share with the question.
//
// The world's functions are the members of `provider` at the end. What each of them must do is stated in
// `wit/provider.wit`. A thrown object is the contract's error; a thrown `Error` is a trap.

import * as storage from 'paperclip:memory/storage@0.1.0';

const MEGABYTE = 1n << 20n;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const bytes = (text) => encoder.encode(text);
const now = () => new Date().toISOString();

function invalid(field, message) {
  throw { tag: 'invalid-request', val: { field, message } };
}

/** A JSON object, or nothing as an empty one. */
function objectOf(text, field) {
  let value;
  try {
    value = text === undefined ? {} : JSON.parse(text);
  } catch (error) {
    invalid(field, `${field} is not JSON: ${error.message}; send a JSON object`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    invalid(field, `${field} is not an object; send a JSON object`);
  }
  return value;
}

/** Whether two JSON values are equal; the order of members does not count. */
function isEqual(a, b) {
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}

function matches(note, wanted) {
  const members = Object.entries(wanted);
  if (members.length === 0) return true;
  const metadata = objectOf(note.metadata, 'metadata');
  return members.every(([name, value]) => Object.hasOwn(metadata, name) && isEqual(metadata[name], value));
}

/** Whether a scope may see a note: it has no other value in a field that the note has set. */
function isVisible(note, scope) {
  const fits = (own, asked) => own === undefined || asked === undefined || own === asked;
  const { agentId, subjectId, namespace } = note.partition;
  return fits(agentId, scope.agentId) && fits(subjectId, scope.subjectId) && fits(namespace, scope.namespace);
}

function partitionOf({ agentId, subjectId, namespace }) {
  return { agentId, subjectId, namespace };
}

function snippet(id, note, score) {
  const { text, summary, source, metadata, createdAt, updatedAt, expiresAt } = note;
  return { id, text, score, summary, source, metadata, createdAt, updatedAt, expiresAt, scope: undefined };
}

// Storage. Everything that lasts is in it: an instance may be dropped after any call.

/** Calls storage and converts its errors into the contract's. */
function stored(call, ...args) {
  try {
    return call(...args);
  } catch (error) {
    const { tag, val } = error.payload ?? error;
    throw tag === 'limit-exceeded' ? { tag: 'quota-exceeded', val } : { tag: 'internal', val: `storage: ${val}` };
  }
}

const recordKey = (id) => bytes(`r/${id}`);
const put = (key, value) => ({ tag: 'put', val: { key, value: bytes(JSON.stringify(value)) } });

function read(key) {
  const value = stored(storage.get, key);
  return value === undefined ? undefined : JSON.parse(decoder.decode(value));
}

/** A note that the scope may see. */
function visible(id, scope) {
  const note = read(recordKey(id));
  return note !== undefined && isVisible(note, scope) ? note : undefined;
}

/** All notes that the scope may see, in the order of their ids' bytes. */
function* notesOf(scope) {
  let cursor;
  do {
    const page = stored(storage.scan, bytes('r/'), cursor, 0);
    for (const { key, value } of page.entries) {
      const note = JSON.parse(decoder.decode(value));
      if (isVisible(note, scope)) yield [decoder.decode(key.subarray(2)), note];
    }
    cursor = page.next;
  } while (cursor !== undefined);
}

/** Compares as storage does. JavaScript's own `<` compares UTF-16, which is another order. */
function isAfter(id, last) {
  const [a, b] = [bytes(id), bytes(last)];
  const differs = a.findIndex((byte, index) => byte !== b[index]);
  return differs === -1 ? false : b[differs] === undefined || a[differs] > b[differs];
}

const operationMark = (operationId) => bytes(`o/${operationId}`);

// The exported functions.

function describe() {
  return {
    providerKey: 'notes-javascript',
    name: 'Notes in JavaScript',
    version: '0.1.0',
    summary: 'Notes, found by their words; an example in JavaScript',
    configSchema: undefined,
    capabilities: { providerManagedExtraction: false, asyncExtraction: false },
    // A mark is looked up and then written. Two instances at once could both find none.
    maxConcurrency: 1,
    permissions: [
      { permission: { tag: 'storage', val: 64n * MEGABYTE }, reason: 'The notes are kept in it', optional: false },
    ],
    // It does everything itself.
    declarations: { leftToHost: [], exceptions: [] },
  };
}

function validateConfig(config) {
  if (Object.keys(objectOf(config, 'config')).length > 0) {
    throw [{ pointer: '', message: 'this provider has no configuration; leave it out' }];
  }
}

function capture({ operationId, scope, source, payload, hook, metadata }) {
  // The answer to an earlier delivery of this operation.
  const mark = operationMark(operationId);
  let ids = read(mark);
  if (ids === undefined) {
    const said = payload.turns.map(({ role, text }) => `${role}: ${text}`).join('\n\n');
    const text = payload.text ?? (said || payload.object);
    if (text === undefined) {
      invalid('payload.text', 'the payload has neither a text nor turns nor an object; send one of them');
    }
    const merged = { ...objectOf(payload.metadata, 'payload.metadata'), ...objectOf(metadata, 'metadata') };
    const time = hook?.triggeredAt ?? now();
    const note = {
      text,
      metadata: Object.keys(merged).length > 0 ? JSON.stringify(merged) : undefined,
      source,
      partition: partitionOf(scope),
      createdAt: time,
      updatedAt: time,
    };
    ids = [`${operationId}.0`];
    // One batch, so that after a crash either the note and its mark exist or neither.
    stored(storage.apply, [put(recordKey(ids[0]), note), put(mark, ids)]);
  }
  return { records: ids, jobs: [], usage: [] };
}

function upsertRecords({ operationId, scope, source, records }) {
  const mark = operationMark(operationId);
  let ids = read(mark);
  if (ids === undefined) {
    const time = now();
    ids = records.map(({ id }, n) => id ?? `${operationId}.${n}`);
    const writes = records.map(({ text, summary, metadata, source: own, createdAt: since, expiresAt }, n) => {
      const old = read(recordKey(ids[n]));
      if (old !== undefined && !isVisible(old, scope)) {
        invalid(`records.${n}.id`, 'another agent, subject or namespace has this id; choose another one');
      }
      const times = { createdAt: since ?? old?.createdAt ?? time, updatedAt: time, expiresAt };
      const note = { text, summary, metadata, source: own ?? source, partition: partitionOf(scope), ...times };
      return put(recordKey(ids[n]), note);
    });
    stored(storage.apply, [...writes, put(mark, ids)]);
  }
  return { records: ids, usage: [] };
}

function query({ scope, query, topK, metadataFilter }) {
  const wanted = objectOf(metadataFilter, 'metadataFilter');
  const words = [...new Set(query.toLowerCase().split(/\s+/u).filter(Boolean))];
  const found = [];
  for (const [id, note] of notesOf(scope)) {
    const text = note.text.toLowerCase();
    const share = words.filter((word) => text.includes(word)).length / Math.max(words.length, 1);
    if ((share > 0 || words.length === 0) && matches(note, wanted)) found.push({ id, note, share });
  }
  // Of equal hits the newest comes first, which is the order for an empty question.
  const newer = (a, b) => (a < b ? 1 : a > b ? -1 : 0);
  found.sort((a, b) => b.share - a.share || newer(a.note.updatedAt, b.note.updatedAt));
  const snippets = found.slice(0, topK).map(({ id, note, share }) => snippet(id, note, { tag: 'similarity', val: share }));
  return { snippets, profileSummary: undefined, usage: [] };
}

function listRecords({ scope, cursor, limit, metadataFilter }) {
  const wanted = objectOf(metadataFilter, 'metadataFilter');
  const items = [];
  for (const [id, note] of notesOf(scope)) {
    // The cursor is the last id of the page before: it stays valid when that note is removed.
    if ((cursor !== undefined && !isAfter(id, cursor)) || !matches(note, wanted)) continue;
    if (items.length === limit) return { items, continuation: { tag: 'next', val: items.at(-1).id }, usage: [] };
    items.push(snippet(id, note, { tag: 'none' }));
  }
  return { items, continuation: { tag: 'end' }, usage: [] };
}

function getRecord(id, scope) {
  const note = visible(id, scope);
  return { snippet: note && snippet(id, note, { tag: 'none' }), usage: [] };
}

function forget({ ids, scope }) {
  const gone = new Set();
  const outcomes = ids.map((id) => {
    const isThere = !gone.has(id) && visible(id, scope) !== undefined;
    if (isThere) gone.add(id);
    return { id, effect: isThere ? 'hard' : 'not-found' };
  });
  stored(storage.apply, [...gone].map((id) => ({ tag: 'delete', val: recordKey(id) })));
  return { outcomes, usage: [] };
}

export const provider = { describe, validateConfig, capture, upsertRecords, query, listRecords, getRecord, forget };
