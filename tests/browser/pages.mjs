// Every page of the explorer: checked by axe in light and dark, measured at a narrow width, with a screenshot.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
// Rules that depend on the colours. The others were checked before.
const COLOURS = ['color-contrast', 'link-in-text-block'];
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 360, height: 780 };

/** Names and addresses: those of the navigation, and one of everything that has a page of its own. */
export const pages = async (host) => {
  const c = (path) => `/c/${host.company}${/^(\?|$)/.test(path) ? '' : '/'}${path}`;
  const first = async (list) => (await host.control(list)).items[0].id;
  const [failed, done, review, delivery, operation, capture, token] = await Promise.all([
    'jobs?status=failed', 'jobs?status=succeeded', 'reviews?status=pending', 'deliveries?status=dead',
    'operations?kind=query&agentId=ada', 'operations?kind=capture&bindingKey=extracts', 'tokens',
  ].map(first));
  const { admitted } = await host.ask('GET', '/control/v1/plugins');
  const digest = admitted.find((build) => build.providerKey === 'extracts' || JSON.stringify(build).includes('"extracts"')).digest;
  const records = (await host.memory('list', { scope: host.scope(), limit: 1 })).items;
  const record = c(`records/default/${records[0].handle.providerRecordId.split('/').map(encodeURIComponent).join('/')}`);
  return {
    companies: '/',
    overview: c(''),
    doctor: c('?doctor=yes'),
    operations: c('operations'),
    'operation query': c(`operations/${operation}`),
    'operation capture': c(`operations/${capture}`),
    records: c('records'),
    record,
    query: c('query'),
    'query answered': c('query?query=who+may+reach+the+network'),
    browse: c('browse'),
    facts: c('facts'),
    'facts of both': c('facts?user=u1&drive=d1'),
    'facts cleared': c('facts/clear?user=u1&drive=d1&whose=drive'),
    jobs: c('jobs'),
    'job failed': c(`jobs/${failed}`),
    'job done': c(`jobs/${done}`),
    'job cancel': c(`jobs/${failed}/cancel`),
    reviews: c('reviews'),
    review: c(`reviews/${review}`),
    hooks: c('hooks'),
    delivery: c(`hooks/${delivery}`),
    bindings: c('bindings'),
    binding: c('bindings/extracts'),
    'binding undecided': c('bindings/undecided'),
    'binding new': c('new-binding'),
    'binding edit': c('bindings/careful/edit'),
    'binding delete': c('bindings/undecided/delete'),
    resolve: c('resolve?agentId=linus'),
    tokens: c('tokens'),
    'token new': c('tokens/new'),
    'token revoke': c(`tokens/${token}/revoke`),
    costs: c('costs'),
    'costs by day': c('costs?by=day&then=provider'),
    'cost events': c('cost-events'),
    charges: c('charges'),
    budgets: c('budgets'),
    activity: c('activity'),
    events: c('events'),
    plugins: '/plugins',
    plugin: `/plugins/${digest}`,
    'operator tokens': '/tokens',
    'nothing matches': c('jobs?status=cancelled'),
  };
};

const findings = async (page, options) => {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const { violations } = await page.evaluate((wanted) => window.axe.run(document, { ...wanted, resultTypes: ['violations'] }), options);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} (${node.any[0]?.message ?? ''})`).join(' | ')}`);
};

/** Whatever makes the page wider than its window. */
const tooWide = (page) => page.evaluate(() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth && document.body.scrollWidth <= root.clientWidth) return null;
  const wide = [...document.querySelectorAll('main *')].filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1);
  const inScroller = (element) => element.closest('.scroll, pre, nav');
  const names = wide.filter((element) => !inScroller(element)).slice(0, 3).map((element) => element.outerHTML.slice(0, 120));
  return `${root.scrollWidth} > ${root.clientWidth}: ${names.join(' | ')}`;
});

/** Looks at one page in every way. Answers what is wrong with it. */
export const look = async (page, origin, name, path, pictures) => {
  const wrong = [];
  const say = (what) => wrong.push(`${path}: ${what}`);
  const picture = async (as) => pictures && page.screenshot({ path: `${pictures}/${name.replaceAll(' ', '-')}-${as}.png`, fullPage: true, animations: 'disabled' });
  await page.setViewportSize(WIDE);
  await page.emulateMedia({ colorScheme: 'light' });
  const answer = await page.goto(origin + path);
  if (answer.status() !== 200) return [`${path}: ${answer.status()}`];
  if ((await page.locator('h1').count()) !== 1) say('it has not one heading');
  for (const found of await findings(page, {})) say(`light: ${found}`);
  await picture('light');
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const found of await findings(page, { runOnly: COLOURS })) say(`dark: ${found}`);
  await picture('dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(NARROW);
  const wide = await tooWide(page);
  if (wide) say(`at 360 px: ${wide}`);
  await picture('360');
  return wrong;
};
