// Actions in the explorer. Each one is checked through the API, not only on the page.

import * as memory from './memory.mjs';
import { expecting } from './watch.mjs';

/** `actual` must be `expected`. */
export const is = (actual, expected, what) => {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)} and not ${JSON.stringify(expected)}`);
};

/** What the page said after something was done. */
export const said = (page) => page.locator('[data-flash]').innerText();

const at = ({ origin, host }, path) => `${origin}/c/${host.company}${path && `/${path}`}`;

export const signIn = async ({ page, origin }, token) => {
  await page.goto(`${origin}/c/demo/jobs?status=failed`);
  is(new URL(page.url()).pathname, '/sign-in', 'a stranger is led to');
  await page.getByLabel('Token').fill('no token');
  await expecting(page, 401, () => page.getByRole('button', { name: 'Sign in' }).click());
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL('**/c/demo/jobs?status=failed');
  const session = (await page.context().cookies()).find(({ name }) => name === 'memhost_session');
  is(`${session.httpOnly} ${session.sameSite}`, 'true Strict', 'the session is hidden from scripts and other sites');
};

export const signOut = async ({ page, origin }) => {
  await page.goto(`${origin}/`);
  const before = await page.context().cookies();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL('**/sign-in');
  // After signing out, neither the browser nor a copy of its cookie is accepted.
  await page.context().addCookies(before);
  await page.goto(`${origin}/plugins`);
  is(new URL(page.url()).pathname, '/sign-in', 'after signing out one is led to');
};

export const navigation = async (world) => {
  const { page } = world;
  await page.goto(at(world, ''));
  const names = await page.locator('#nav .group a').allInnerTexts();
  for (const name of names) {
    await page.goto(at(world, ''));
    const link = page.locator('#nav').getByRole('link', { name, exact: true });
    const path = await link.getAttribute('href');
    await link.click();
    await page.waitForURL((url) => url.pathname === path);
    is(await page.locator('#nav a[aria-current=page]').innerText(), name, `the navigation on ${path} shows`);
    const row = page.locator('a.row').first();
    if (!(await row.count())) continue;
    const to = await row.getAttribute('href');
    await row.click();
    await page.waitForURL((url) => url.pathname === to.split('?')[0]);
    await page.locator('main h1').waitFor();
  }
  return names.join(', ');
};

const retryJob = async ({ page, host, ...rest }) => {
  const job = (await host.control('jobs?status=failed')).items[0];
  await page.goto(at({ host, ...rest }, `jobs/${job.id}`));
  await page.getByRole('button', { name: 'Retry' }).click();
  is(await said(page), 'The job is queued again.', 'the page says');
  await host.until(`jobs/${job.id}`, (now) => now.attempts > job.attempts && now.status === 'failed');
  // A live page shows the outcome without being loaded again.
  await page.locator('#state').getByText('failed', { exact: true }).waitFor();
};

const review = async ({ page, host, ...rest }) => {
  const decide = async (text, button, message, before = async () => {}) => {
    await page.goto(at({ host, ...rest }, 'reviews?status=pending'));
    await page.getByRole('link', { name: text }).click();
    await before();
    await page.getByRole('button', { name: button, exact: true }).click();
    is(await said(page), message, 'the page says');
  };
  const found = async (word) => {
    const bundle = await host.memory('query', { bindingKey: 'careful', scope: host.scope({ agentId: 'linus' }), query: word });
    return bundle.snippets.map(({ text }) => text).join('; ');
  };
  is(await found('Thursdays'), '', 'before it is approved a query finds');
  await decide('The release train', 'Approve', 'Approved. Agents get it from now on.');
  is(await found('Thursdays'), 'The release train leaves on Thursdays', 'an approved record');
  await decide('anna@example.com', 'Reject and forget', 'Rejected. The provider was told to forget it.');
  is(await found('anna@example.com,'), '', 'a rejected record');
  await decide('Grace prefers', 'Approve with changes', 'Approved with your changes.', async () => {
    await page.getByText('Edit and approve').click();
    await page.getByLabel('Corrected text').fill('Grace likes short answers');
  });
  is(await found('likes'), 'Grace likes short answers', 'an edited record');
};

const hooks = async ({ page, host, ...rest }) => {
  await page.goto(at({ host, ...rest }, 'hooks'));
  await page.getByRole('link', { name: 'Dead letters' }).click();
  await page.waitForURL('**status=dead**');
  const dead = (await host.control('deliveries?status=dead')).items[0];
  await page.getByRole('button', { name: 'Replay' }).first().click();
  is(await said(page), 'The delivery is queued again.', 'the page says');
  await host.until(`deliveries/${dead.id}`, (now) => now.lastOperationId !== dead.lastOperationId && now.status === 'dead');
};

const bindings = async ({ page, host, ...rest }) => {
  await page.goto(at({ host, ...rest }, 'bindings/undecided'));
  const storage = page.getByLabel(/Decision about storage/i);
  await storage.selectOption('asked');
  await page.getByRole('button', { name: 'Save permissions' }).click();
  await page.locator('[data-flash]').waitFor();
  is((await host.control('bindings/undecided/grants')).granted.storageBytes, 64 << 20, 'granted');
  await page.getByRole('button', { name: 'Disable' }).click();
  is((await host.control('bindings/undecided')).enabled, false, 'enabled');
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.locator('main details:has([name=policy]) > summary').click();
  await page.locator('[name=policy]').fill('{');
  await expecting(page, 422, () => page.getByRole('button', { name: 'Save' }).click());
  await page.locator('.error').first().waitFor();
  await page.goto(at({ host, ...rest }, 'bindings/undecided/delete'));
  await page.locator('main form button.danger').click();
  await page.waitForURL('**/bindings');
  is((await host.control('bindings')).items.some(({ key }) => key === 'undecided'), false, 'a deleted binding is there');
};

const tokens = async ({ page, host, origin, ...rest }) => {
  await page.goto(at({ host, origin, ...rest }, 'tokens'));
  await page.getByRole('link', { name: 'Create token' }).click();
  await page.getByLabel('Name').fill('from the browser');
  await page.getByLabel('Role', { exact: true }).selectOption('auditor');
  await page.getByRole('button', { name: 'Create token' }).click();
  const value = (await page.locator('.secret').innerText()).trim();
  const asked = () => fetch(`${origin}/control/v1/companies/demo/jobs`, { headers: { authorization: `Bearer ${value}` } });
  is((await asked()).status, 200, 'the token is answered');
  await page.goto(at({ host, origin, ...rest }, 'tokens'));
  is((await page.content()).includes(value), false, 'the value is shown again');
  await page.getByRole('link', { name: 'Revoke from the browser' }).click();
  await page.locator('main form button.danger').click();
  await page.waitForURL('**/tokens');
  is((await asked()).status, 401, 'the revoked token is answered');
};

const costs = async ({ page, host, ...rest }) => {
  await page.goto(at({ host, ...rest }, 'costs'));
  for (const by of ['agent', 'provider', 'model', 'day', 'binding']) {
    await page.locator('[name=by]').selectOption(by);
    await page.waitForURL(`**by=${by}**`);
    is((await page.locator('main thead th').first().innerText()).toLowerCase(), by, 'the first column is');
  }
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export CSV' }).click()]);
  if (!/^memhost-costs-.*\.csv$/.test(download.suggestedFilename())) throw new Error(download.suggestedFilename());
  await page.goto(at({ host, ...rest }, 'budgets'));
  await page.getByLabel('Limit (USD)').fill('12.50');
  await page.getByLabel('Period').selectOption('day');
  await page.getByRole('button', { name: 'Set budget' }).click();
  await page.locator('[data-flash]').waitFor();
  const { items } = await host.control('budgets');
  is(items.some(({ budget, limitCents }) => (limitCents ?? budget?.limitCents) === 1250), true, `${JSON.stringify(items)} has the budget`);
};

const facts = async ({ page, host, ...rest }) => {
  const texts = async (path) => (await host.facts('GET', path)).map(({ fact }) => fact).join(', ');
  await page.goto(at({ host, ...rest }, 'facts'));
  await page.getByLabel('User', { exact: true }).fill('u1');
  await page.getByLabel('Drive', { exact: true }).fill('d1');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.waitForURL((url) => url.searchParams.get('user') === 'u1');
  const user = page.getByRole('region', { name: 'About the user u1', exact: true }).first();
  await user.getByLabel('New fact about the user').fill('Likes tea');
  await user.getByRole('button', { name: 'Add fact about the user' }).click();
  is(await said(page), 'Added. It is in every context from now on.', 'the page says');
  is(await texts('user'), 'Senior software engineer, Prefers concise responses, Likes tea', 'the route has');
  await page.getByRole('button', { name: 'Delete Prefers concise responses' }).click();
  is(await said(page), 'Deleted. Agents no longer get it.', 'the page says');
  is(await texts('user'), 'Senior software engineer, Likes tea', 'the route has');
  await page.getByRole('link', { name: 'Clear all facts of the drive' }).click();
  await page.getByText('Chose Zustand over Redux').waitFor();
  await page.getByRole('button', { name: 'Clear all facts' }).click();
  is(await said(page), 'Removed 1 fact.', 'the page says');
  is(await texts('drive/d1'), '', 'the drive has');
  is(await texts('user'), 'Senior software engineer, Likes tea', 'the user still has');
};

const theme = async (world) => {
  const { page } = world;
  await page.goto(at(world, 'jobs'));
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole('button', { name: 'Dark' }).click();
  await page.locator('html[data-theme=dark]').waitFor();
  if (light === await background()) throw new Error('dark is as light as light');
  is(new URL(page.url()).pathname, '/c/demo/jobs', 'one stays on');
  await page.getByRole('button', { name: 'Auto' }).click();
  await page.locator('html[data-theme=system]').waitFor();
};

const plugins = async ({ page, origin }) => {
  await page.goto(`${origin}/plugins`);
  await page.getByRole('button', { name: 'Rescan' }).click();
  if (!/loaded, 1 refused/.test(await said(page))) throw new Error(await said(page));
  await page.getByText('broken.wasm').waitFor();
};

/** Each with what it is called in the output. */
export const all = [
  ['the overview shows who answers, and stays up to date', memory.overview],
  ['each filter of operations', memory.operationFilters],
  ['an operation is shown whole', memory.operationDetail],
  ['an operation of somebody else appears by itself', memory.live],
  ['a query is asked', memory.query],
  ['a record is forgotten', memory.forget],
  ['a job is retried', retryJob],
  ['reviews are decided', review],
  ['a dead letter is replayed', hooks],
  ['a binding is granted, disabled, edited, deleted', bindings],
  ['a token is made and revoked', tokens],
  ['facts are added, deleted in place and cleared', facts],
  ['costs by everything, CSV, a budget', costs],
  ['light and dark', theme],
  ['plugins are looked for', plugins],
  ['filters of other pages', memory.otherFilters],
  ['filters of costs', memory.costFilters],
];
