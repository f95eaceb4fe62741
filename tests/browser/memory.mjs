// Operations and records: filters, live rows, queries, forgetting.

import { is, said } from './deeds.mjs';

const day = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const keys = (page) => page.locator('#rows tr[data-key]').evaluateAll((rows) => rows.map((row) => row.dataset.key));

/** Fills one field as a person does, wherever it is folded away, and answers when the filtered page is there. */
const filterBy = async (page, name, value) => {
  const field = page.locator(`[data-filter] [name="${name}"]`);
  if (!(await field.isVisible())) await page.getByText('More filters').click();
  const isThere = page.waitForURL((url) => url.searchParams.get(name) === value);
  if ((await field.evaluate((element) => element.tagName)) === 'SELECT') {
    await field.selectOption(value);
  } else {
    await field.fill(value);
    await page.locator('[data-filter] button').click();
  }
  await isThere;
  is(await page.locator(`[data-filter] [name="${name}"]`).inputValue(), value, `${name} keeps`);
  is(await page.locator(`[data-filter] [name="${name}"]`).isVisible(), true, `${name} is seen`);
};

/** What the API answers to the same filter: the ids of one page. */
const listed = async (host, list, name, value) => {
  const moment = { since: (text) => `${text}T00:00:00Z`, until: (text) => `${new Date(Date.parse(text) + 86_400_000).toISOString().slice(0, 10)}T00:00:00Z` };
  const asked = name ? `&${name}=${encodeURIComponent(moment[name]?.(value) ?? value)}` : '';
  return (await host.control(`${list}?limit=50${asked}`)).items.map(({ id }) => id);
};

/** Uses each filter of a list, and holds its rows against the API's. Every field of the form must be among the values. */
const eachFilter = async ({ page, origin, host }, path, list, values) => {
  const at = `${origin}/c/${host.company}/${path}`;
  await page.goto(at);
  const fields = await page.locator('[data-filter] [name]').evaluateAll((all) => all.map(({ name }) => name));
  is([...fields].sort().join(), Object.keys(values).sort().join(), `the filters of ${path}`);
  const all = (await listed(host, list)).join();
  is((await keys(page)).join(), all, `${path} without a filter has`);
  for (const [name, value] of Object.entries(values)) {
    await page.goto(at);
    await filterBy(page, name, value);
    const expected = (await listed(host, list, name, value)).join();
    is((await keys(page)).join(), expected, `${path} with ${name}=${value} has`);
    if (expected === all) throw new Error(`${path}: ${name}=${value} leaves nothing out`);
    if (!expected && !['since', 'until'].includes(name)) throw new Error(`${path}: ${name}=${value} finds nothing`);
  }
  return fields.join(', ');
};

export const operationFilters = async (world) => {
  const { page, host } = world;
  const fields = await eachFilter(world, 'operations', 'operations', {
    kind: 'query', outcome: 'failed', bindingKey: 'careful', agentId: 'ada', issueId: 'PAP-7', projectId: 'apollo', runId: 'run-7',
    sessionKey: 'night', sourceKind: 'issue_comment', hookKind: 'issue_comment_capture', since: day(1), until: day(-1),
  });
  // Two at once, and back to everything.
  await page.getByRole('link', { name: 'Clear' }).click();
  await filterBy(page, 'agentId', 'ada');
  await filterBy(page, 'kind', 'query');
  const both = (await host.control('operations?agentId=ada&kind=query')).items.map(({ id }) => id);
  is((await keys(page)).join(), both.join(), 'two filters at once have');
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.locator('[data-next]').waitFor();
  const first = await keys(page);
  await page.keyboard.press('n');
  await page.waitForURL('**cursor=**');
  if ((await keys(page)).some((key) => first.includes(key))) throw new Error('the second page has rows of the first');
  return fields;
};

export const operationDetail = async ({ page, origin, host }) => {
  const at = `${origin}/c/${host.company}/operations`;
  const metered = (await host.control('operations?agentId=grace&runId=run-9')).items[0];
  await page.goto(at);
  await page.locator(`tr[data-key="${metered.id}"] a.row`).click();
  await page.waitForURL(`**/${metered.id}`);
  const panel = (id) => page.locator(`#${id}`).innerText();
  for (const [id, words] of [['provenance', ['grace', 'run-9']], ['usage', ['expensive', 'model-1', '$0.09']], ['timing', ['ms']]]) {
    const text = await panel(id);
    for (const word of words) if (!text.includes(word)) throw new Error(`#${id} has not ${word}: ${text}`);
  }
  if ((await page.locator('#timing .waterfall li').count()) < 3) throw new Error('the timing has fewer than three parts');
  // From a capture to the job that it left, and back.
  const job = (await host.control('jobs?status=succeeded&bindingKey=extracts')).items[0];
  await page.goto(`${at}/${job.operationId}`);
  await page.locator(`#jobs a[href$="/jobs/${job.id}"]`).click();
  await page.locator(`#origin a[href$="/operations/${job.operationId}"]`).click();
  await page.waitForURL(`**/operations/${job.operationId}`);
};

export const overview = async ({ page, origin, host }) => {
  await page.goto(`${origin}/c/${host.company}`);
  await page.locator('[data-live-switch][data-state=on]').waitFor();
  const text = () => page.locator('#overview').innerText();
  for (const word of ['extracts', 'careful', 'linus']) if (!(await text()).includes(word)) throw new Error(`it has not ${word}`);
  if (!(await page.locator('#overview svg').count())) throw new Error('nothing is drawn');
  const before = await page.locator('#overview .stats').first().innerText();
  for (let n = 0; n < 3; n += 1) await host.memory('query', { scope: host.scope(), query: 'what is new' });
  await page.waitForFunction((old) => document.querySelector('#overview .stats').innerText !== old, before);
};

export const otherFilters = async (world) => {
  const jobs = await eachFilter(world, 'jobs', 'jobs', {
    status: 'failed', bindingKey: 'slow', sourceKind: 'issue_comment', hookKind: 'issue_comment_capture', since: day(1), until: day(-1),
  });
  const reviews = await eachFilter(world, 'reviews', 'reviews', { status: 'approved', bindingKey: 'picky', kind: 'fact', piiRisk: '2' });
  const hooks = await eachFilter(world, 'hooks', 'deliveries', { status: 'dead', hookKind: 'issue_comment_capture', bindingKey: 'default', hookId: 'run-20' });
  return `jobs: ${jobs}; reviews: ${reviews}; hooks: ${hooks}`;
};

export const live = async ({ page, origin, host }) => {
  await page.goto(`${origin}/c/${host.company}/operations`);
  await page.locator('[data-live-switch][data-state=on]').waitFor();
  await page.evaluate(() => { window.isSamePage = true; });
  const { operationId } = await host.capture('Something that happens while somebody looks', 'extracts', { agentId: 'grace' });
  await page.locator(`#rows tr.new[data-key="${operationId}"]`).waitFor();
  is((await keys(page))[0], operationId, 'the newest row is');
  is(await page.evaluate(() => window.isSamePage), true, 'it is the same page');
  // Whoever pauses it is left alone.
  await page.locator('[data-live-switch]').click();
  await page.locator('[data-live-switch][data-state=off]').waitFor();
  const later = await host.capture('Something that happens while it is paused', 'extracts');
  await page.waitForTimeout(900);
  is((await keys(page)).includes(later.operationId), false, 'a row appears while it is paused');
  await page.locator('[data-live-switch]').click();
  await page.locator(`#rows tr[data-key="${later.operationId}"]`).waitFor();
};

export const query = async ({ page, origin, host }) => {
  await page.goto(`${origin}/c/${host.company}/query`);
  const before = (await host.control('operations?kind=query&limit=1')).items[0].id;
  await page.locator('main [name="query"]').fill('Who may reach the network?');
  await page.locator('main form button').first().click();
  await page.waitForURL('**query=Who**');
  const after = (await host.control('operations?kind=query&limit=1')).items[0];
  if (after.id === before) throw new Error('no query was made');
  const bundle = await host.memory('query', { scope: host.scope(), query: 'Who may reach the network?' });
  const text = (await page.locator('main').innerText()).replace(/\s+/g, ' ');
  const best = bundle.snippets[0].text.replace(/\s+/g, ' ').trim().slice(0, 60);
  if (!text.includes(best)) throw new Error(`the answer has not ${best}`);
};

export const forget = async ({ page, origin, host }) => {
  const fact = `The lamp in the hall is green since ${Date.now()}`;
  const { records: [handle] } = await host.memory('records', { scope: host.scope(), records: [{ text: fact }] });
  const id = handle.providerRecordId.split('/').map(encodeURIComponent).join('/');
  const kept = async () => (await host.memory('get', { scope: host.scope(), handle })).record;
  await page.goto(`${origin}/c/${host.company}/records/default/${id}`);
  await page.getByText(fact).first().waitFor();
  await page.getByRole('link', { name: 'Forget' }).click();
  is((await kept())?.text.trim(), fact, 'before somebody has confirmed it, it is');
  await page.locator('main form button.danger').click();
  await page.locator('[data-flash]').waitFor();
  is(await kept() ?? null, null, 'afterwards it is');
  return said(page);
};
