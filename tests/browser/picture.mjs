// The picture of the README: the overview of a company in which several agents work.

import { Company } from './host.mjs';
import { watch } from './watch.mjs';

const WINDOW = { width: 1280, height: 800 };
const COMPANY = 'acme';

/** A company with bindings, operations of all kinds, costs, jobs and review items. */
const fill = async (host) => {
  const grants = { storageBytes: 64 << 20, http: [{ origin: 'https://api.example.com' }] };
  const bind = (key, rest) => host.change('POST', 'bindings', { key, ...rest });
  await bind('team-notes', { providerKey: 'local-markdown', default: true });
  await bind('code-review', { providerKey: 'extracts', grants });
  await bind('support', { providerKey: 'extracts', grants, policy: { review: { all: true } } });
  await host.change('PUT', 'targets', { agentId: 'reviewer', bindingKey: 'code-review' });
  await host.change('PUT', 'targets', { agentId: 'support-desk', bindingKey: 'support' });
  await host.change('PUT', 'budgets/month', { limitCents: 2000 });
  await host.change('PUT', 'bindings/code-review/budgets/day', { limitCents: 150 });
  const notes = [
    'Deploys are frozen on Fridays and in the last week of December',
    'The staging database is restored from production every Monday',
    'Releases need the approval of two maintainers',
    'The on-call rotation changes on Wednesdays at noon',
  ];
  for (const text of notes) await host.memory('records', { scope: host.scope({ runId: 'run-101' }), records: [{ text }] });
  const { records: [draft] } = await host.memory('records', { scope: host.scope(), records: [{ text: 'A draft that nobody needs' }] });
  for (const cents of [4, 11, 23]) await host.capture(`metered ${cents}`, 'code-review', { agentId: 'reviewer', projectId: 'apollo', runId: `run-${cents}` });
  await host.capture('job slices 3', 'code-review', { agentId: 'reviewer', issueId: 'PAP-7', runId: 'run-102' });
  await host.capture('job fails', 'code-review', { agentId: 'reviewer', issueId: 'PAP-9', runId: 'run-103' });
  const customer = { text: 'The customer prefers to be called in the afternoon', kind: 'preference', confidence: 0.7 };
  await host.capture(JSON.stringify(customer), 'support', { agentId: 'support-desk', runId: 'run-104' });
  await host.capture('flaky 99', 'code-review', { agentId: 'reviewer' }).catch(() => {});
  await host.until('jobs', ({ items }) => items.length === 2 && items.every((job) => ['failed', 'succeeded'].includes(job.status)));
  const questions = ['when may I deploy?', 'who approves releases?', 'when does the on-call rotation change?', 'zxqv'];
  for (const agentId of ['planner', 'reviewer', 'planner']) {
    for (const query of questions) {
      const scope = host.scope({ agentId, runId: 'run-105' });
      const { snippets: [best] } = await host.memory('query', { bindingKey: 'team-notes', scope, query });
      // Reading a result counts as using it.
      if (best) await host.memory('get', { bindingKey: 'team-notes', scope, handle: best.handle });
    }
  }
  await host.memory('list', { scope: host.scope({ agentId: 'planner' }), limit: 10 });
  await host.memory('forget', { scope: host.scope(), handles: [draft] });
  await host.memory('query', { scope: host.scope({ agentId: 'planner' }), query: 'is the staging database current?' });
};

/** Takes the picture into the folder. */
export const takePicture = async ({ browser, origin, host, pictures }) => {
  const company = new Company(origin, host.token, COMPANY);
  await fill(company);
  if (!pictures) return 'no folder for it';
  // An administrator of the company does not see the pages of the host.
  const { value } = await company.change('POST', 'tokens', { name: 'administrator', role: 'company_administrator' });
  const context = await browser.newContext({ viewport: WINDOW, colorScheme: 'light', reducedMotion: 'reduce' });
  const page = await context.newPage();
  watch(page, origin);
  await page.goto(`${origin}/sign-in`);
  await page.getByLabel('Token').fill(value);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`**/c/${COMPANY}`);
  await page.locator('[data-live-switch][data-state=on]').waitFor();
  await page.locator('#overview .stats').waitFor();
  await page.screenshot({ path: `${pictures}/readme.png`, animations: 'disabled' });
  await context.close();
  return `${pictures}/readme.png`;
};
