// The host through its API: the data that pages are compared with, and changes that are made beside the browser.

/** A company of the host that was started for this run. */
export class Company {
  constructor(origin, token, company) {
    Object.assign(this, { origin, token, company });
  }

  async ask(method, path, body, more = {}) {
    const answer = await fetch(this.origin + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json', ...more },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  control(path) {
    return this.ask('GET', `/control/v1/companies/${this.company}/${path}`);
  }

  change(method, path, body) {
    return this.ask(method, `/control/v1/companies/${this.company}/${path}`, body);
  }

  memory(path, body) {
    return this.ask('POST', `/runtime/v1/companies/${this.company}/${path}`, body);
  }

  /** PageSpace's routes, for the user u1. */
  facts(method, path, body) {
    return this.ask(method, `/api/memory/${path}`, body, { 'x-user-id': 'u1' });
  }

  scope(rest = {}) {
    return { companyId: this.company, ...rest };
  }

  capture(text, bindingKey, scope = {}) {
    const source = { kind: 'run', companyId: this.company, runId: scope.runId ?? 'run-1' };
    return this.memory('capture', { bindingKey, scope: this.scope(scope), source, payload: { text } });
  }

  /** Asks again and again until it is so. */
  async until(path, isSo) {
    for (let tries = 0; tries < 2400; tries += 1) {
      const found = await this.control(path);
      if (isSo(found)) return found;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`it never became so: ${path}: ${JSON.stringify(await this.control(path)).slice(0, 600)}`);
  }
}

/** Beside what the demo made: work that failed, things that wait for a person, money, agents at work. */
export const seed = async (host) => {
  const grants = { storageBytes: 64 << 20, http: [{ origin: 'https://api.example.com' }] };
  const hooks = ['post_run_capture', 'issue_comment_capture'].map((kind) => ({ kind, when: 'always' }));
  await host.change('POST', 'bindings', { key: 'extracts', providerKey: 'extracts', grants, policy: { hooks } });
  await host.change('POST', 'bindings', { key: 'careful', providerKey: 'extracts', grants, policy: { review: { all: true } } });
  await host.change('POST', 'bindings', { key: 'picky', providerKey: 'extracts', grants, policy: { review: { threshold: 0.9 } } });
  await host.change('POST', 'bindings', { key: 'slow', providerKey: 'extracts', grants });
  await host.change('POST', 'bindings', { key: 'undecided', providerKey: 'extracts' });
  await host.change('POST', 'bindings', { key: 'facts', providerKey: 'facts', grants: { storageBytes: 1 << 20, clock: true } });
  await host.change('PUT', 'targets', { agentId: 'linus', bindingKey: 'careful' });
  await host.change('PUT', 'secrets/API_KEY', { value: 'a value of eight', origins: ['https://api.example.com'], usedAs: { kind: 'header', name: 'authorization', prefix: 'Bearer' } });
  await host.change('PUT', 'budgets/month', { limitCents: 5000 });
  await host.change('PUT', 'bindings/extracts/budgets/day', { limitCents: 20 });
  await host.change('POST', 'tokens', { name: 'ada at night', role: 'agent', agentId: 'ada' });
  await host.change('POST', 'tokens', { name: 'books', role: 'auditor' });
  await host.change('POST', 'finance-events', { eventKind: 'fee', biller: 'vectors-inc', amountCents: 900, occurredAt: new Date().toISOString() });
  for (const text of ['job makes a record of the release', 'job slices 3', 'job fails on what makes no sense', 'job fails again']) {
    await host.capture(text, 'extracts', { agentId: 'ada', projectId: 'apollo', issueId: 'PAP-7', runId: 'run-7' });
  }
  for (const cents of [3, 5, 9]) await host.capture(`metered ${cents}`, 'extracts', { agentId: 'grace', runId: `run-${cents}` });
  const facts = [
    ['The release train leaves on Thursdays', 'fact', 0.9],
    ['Grace prefers short answers', 'preference', 0.4],
    ['The customer is anna@example.com, card 4111 1111 1111 1111', 'person', 0.7],
    ['Deploys are frozen in December', 'decision', 0.8],
  ];
  for (const [text, kind, confidence] of facts) {
    await host.capture(JSON.stringify({ text, kind, confidence }), 'careful', { agentId: 'linus' });
  }
  await host.capture(JSON.stringify({ text: 'Perhaps the office moves', kind: 'rumour', confidence: 0.2 }), 'picky');
  const comment = { kind: 'issue_comment', companyId: host.company, issueId: 'PAP-8', commentId: 'c-1' };
  const commented = { hookKind: 'issue_comment_capture', hookId: 'c-1', triggeredAt: new Date().toISOString() };
  await host.memory('capture', { bindingKey: 'slow', scope: host.scope({ sessionKey: 'night' }), source: comment, hook: commented, payload: { text: 'job reads a comment' } });
  const hook = (hookId, text, hookKind = 'post_run_capture', about = {}) => host.memory('hooks', {
    hookKind, hookId, triggeredAt: new Date().toISOString(), waitMs: 2000,
    scope: host.scope({ agentId: 'ada', runId: hookId, ...about }),
    source: { kind: 'run', companyId: host.company, runId: hookId }, payload: { text },
  });
  await hook('run-20', 'flaky 99 and nothing helps');
  await hook('run-21', 'The staging database was restored');
  await hook('c-2', 'The second comment on the staging database', 'issue_comment_capture', { agentId: 'grace', issueId: 'PAP-9' });
  const event = (type, rest) => ({ type, projectId: 'apollo', sessionId: 's-1', agentKind: 'claude', ...rest });
  await host.memory('events', { events: [
    event('session.started'),
    event('tool_call.started', { toolId: 'grep' }),
    event('tool_call.succeeded', { toolId: 'grep', status: 'ok', durationMs: 41 }),
    event('session.stopped', { projectId: 'gemini', sessionId: 's-2', agentKind: 'codex' }),
  ] });
  for (const [agentId, query] of [['ada', 'who may reach the network?'], ['grace', 'what is a binding?'], ['ada', 'zxqv unknown word']]) {
    await host.memory('query', { scope: host.scope({ agentId, projectId: 'apollo', runId: 'run-7' }), query });
  }
  for (const fact of ['Senior software engineer', 'Prefers concise responses']) await host.facts('POST', 'user', { fact });
  await host.facts('POST', 'drive/d1', { fact: 'Chose Zustand over Redux', source: 'ai' });
  // One that fails and one that is refused.
  await host.capture('flaky 99', 'extracts').catch(() => {});
  await host.memory('query', { bindingKey: 'nothing', scope: host.scope(), query: 'refused' }).catch(() => {});
  await host.until('jobs', ({ items }) => items.length === 5 && items.every((job) => ['failed', 'succeeded'].includes(job.status)));
  await host.until('deliveries', ({ items }) => items.some((delivery) => delivery.status === 'dead'));
  await host.until('reviews?status=pending', ({ items }) => items.length === facts.length + 1);
};
