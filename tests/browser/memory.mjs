// Operations and records: filters, live rows, queries, forgetting.

import { is, said } from './deeds.mjs';

const day = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const keys = (page) => page.locator('#rows tr[data-key]').evaluateAll((rows) => rows.map((row) => row.dataset.key));

/** Fills one field as a person does, wherever it is folded away, and answers when the filtered page is there. */
const filterBy = async (page, name, value) => {
  const field = page.locator(`[data-filter] [name="${name}"]`);
  if (!(await field.isVisible())) await page.getByText('More filters').click();
  const ask = async () => {
    if ((await field.evaluate((element) => element.tagName)) === 'SELECT') return field.selectOption(value);
    await field.fill(value);
    return page.locator('[data-filter] button').click();
  };
  await Promise.all([page.waitForURL((url) => url.searchParams.get(name) === value), ask()]).catch((error) => { throw new Error(`${name}: ${error.message}`); });
  is(await page.locator(`[data-filter] [name="${name}"]`).inputValue(), value, `${name} keeps`);
  is(await page.locator(`[data-filter] [name="${name}"]`).isVisible(), true, `${name} is seen`);
};

/** What the API answers to the same filter: the ids of one page. */
const listed = async (host, list, name, value) => {
  const moment = { since: (text) => `${text}T00:00:00Z`, until: (text) => `${new Date(Date.parse(text) + 86_400_000).toISOString().slice(0, 10)}T00:00:00Z` };
  const asked = name ? `&${name}=${encodeURIComponent(moment[name]?.(value) ?? value)}` : '';
  try {
    return (await host.control(`${list}?limit=50${asked}`)).items.map(({ id }) => id);
  } catch (error) {
    // The API has no such filter, so the items with the value are counted here.
    if (!/unknown field/.test(error.message)) throw error;
    return (await host.control(`${list}?limit=50`)).items.filter((item) => String(item[name]) === value).map(({ id }) => id);
  }
};

/** Every item of a list, page by page. */
const everything = async (host, list) => {
  const items = [];
  for (let cursor = ''; cursor !== null;) {
    const page = await host.control(`${list}?limit=50${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    items.push(...page.items);
    cursor = page.nextCursor ?? null;
  }
  return items;
};

/** Every text that an item has under a name, however deep. */
const valuesOf = (item, name) => Object.entries(item ?? {}).flatMap(([key, value]) => {
  if (value && typeof value === 'object') return valuesOf(value, name);
  return key === name && value !== null ? [String(value)] : [];
});

/** The filters of a page, as its form declares them: name, kind of control, and the values of a select. */
const declared = (page) => page.locator('[data-filter] [data-control]').evaluateAll((all) => all.map(({ name, dataset, options }) => (
  { name, control: dataset.control, values: options ? [...options].map(({ value }) => value).filter(Boolean) : [] }
)));

/** A value that finds something and leaves something out, where there is one. */
const telling = async (host, list, items, all, { name, control, values }) => {
  if (control === 'day') return { value: day(name === 'since' ? 1 : -1), expected: '' };
  const candidates = control === 'select' ? values : [...new Set(items.flatMap((item) => valuesOf(item, name)))];
  for (const value of candidates) {
    const expected = (await listed(host, list, name, value)).join();
    if (expected && expected !== all) return { value, expected };
  }
  throw new Error(`${list}: no value of ${name} finds something and leaves something out; it has ${candidates}`);
};

/** Uses each filter that a page declares, and holds its rows against the API's. */
const eachFilter = async ({ page, origin, host }, path, list, atLeast) => {
  const at = `${origin}/c/${host.company}/${path}`;
  await page.goto(at);
  const fields = await declared(page);
  const names = await page.locator('[data-filter] [name]').evaluateAll((found) => found.map(({ name }) => name));
  is(fields.map(({ name }) => name).join(), names.join(), `the filters that ${path} declares`);
  if (fields.length < atLeast) throw new Error(`${path} has only the filters ${names}`);
  const items = await everything(host, list);
  const all = (await listed(host, list)).join();
  is((await keys(page)).join(), all, `${path} without a filter has`);
  for (const field of fields) {
    const { value, expected } = await telling(host, list, items, all, field);
    await page.goto(at);
    await filterBy(page, field.name, value);
    is((await keys(page)).join(), (await listed(host, list, field.name, value)).join(), `${path} with ${field.name}=${value} has`);
    is((await keys(page)).join(), expected, `${path} with ${field.name}=${value} still has`);
  }
  return names.join(', ');
};

export const operationFilters = async (world) => {
  const { page, host } = world;
  const fields = await eachFilter(world, 'operations', 'operations', 14);
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
  for (const [id, words] of [['provenance', ['grace', 'run-9']], ['usage', ['expensive', 'model-1', '$0.09']], ['timing', ['Total', 'Host', 'Provider']]]) {
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
  for (const word of ['default', 'careful', 'linus']) if (!(await text()).includes(word)) throw new Error(`it has not ${word}`);
  if (!(await page.locator('#overview svg').count())) throw new Error('nothing is drawn');
  const before = await page.locator('#overview .stats').first().innerText();
  for (let n = 0; n < 3; n += 1) await host.memory('query', { scope: host.scope(), query: 'what is new' });
  await page.waitForFunction((old) => document.querySelector('#overview .stats').innerText !== old, before);
};

export const otherFilters = async (world) => {
  const said = [];
  for (const [path, list, atLeast] of [['jobs', 'jobs', 6], ['reviews', 'reviews', 4], ['hooks', 'deliveries', 4], ['events', 'events', 7]]) {
    said.push(`${path}: ${await eachFilter(world, path, list, atLeast)}`);
  }
  return said.join('; ');
};

/** Each filter of costs keeps its value, and its sums are those of the API. */
export const costFilters = async ({ page, origin, host }) => {
  const at = `${origin}/c/${host.company}/costs`;
  await page.goto(at);
  const fields = await declared(page);
  if (fields.length < 5) throw new Error(`costs has only the filters ${fields.map(({ name }) => name)}`);
  for (const { name, control, values } of fields) {
    await page.goto(at);
    await filterBy(page, name, control === 'day' ? day(0) : values.at(-1));
    await page.locator('main table').waitFor();
  }
  await page.goto(`${at}?bindingKey=extracts`);
  const { total } = await host.control('costs?bindingKey=extracts');
  const shown = (await page.locator('.stats div', { hasText: 'Operations' }).locator('dd').innerText()).split('\n')[0];
  is(Number(shown.replaceAll(',', '')), total.operations, 'the operations of one binding are');
  return fields.map(({ name }) => name).join(', ');
};

export const live = async ({ page, open, origin, host }) => {
  await page.goto(`${origin}/c/${host.company}/operations`);
  await page.locator('[data-live-switch][data-state=on]').waitFor();
  await page.evaluate(() => { window.isSamePage = true; });
  const { operationId } = await host.capture('Something that happens while somebody looks', 'extracts', { agentId: 'grace' });
  await page.locator(`#rows tr.new[data-key="${operationId}"]`).waitFor();
  is((await keys(page))[0], operationId, 'the newest row is');
  is(await page.evaluate(() => window.isSamePage), true, 'it is the same page');
  // A paused page does not change.
  await page.locator('[data-live-switch]').click();
  await page.locator('[data-live-switch][data-state=off]').waitFor();
  // A second, live page shows when the row would appear on the paused one.
  const other = await open();
  await other.goto(`${origin}/c/${host.company}/operations`);
  await other.locator('[data-live-switch][data-state=on]').waitFor();
  const later = await host.capture('Something that happens while it is paused', 'extracts');
  await other.locator(`#rows tr[data-key="${later.operationId}"]`).waitFor();
  await other.close();
  await page.waitForTimeout(200);
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
