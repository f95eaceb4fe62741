// The explorer in a browser. `node explorer.mjs ADDRESS PICTURES`, with MEMHOST_TOKEN and MEMHOST_CHROMIUM; the host has
// the company `demo` as `memhost demo` makes it, and the guest `extracts`.

import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';
import * as deeds from './deeds.mjs';
import { Company, seed } from './host.mjs';
import { look, pages } from './pages.mjs';
import { takePicture } from './picture.mjs';
import { keyboard, withoutScript } from './reading.mjs';
import { errors, policyReports, provesItself, watch } from './watch.mjs';

const [origin, pictures] = process.argv.slice(2);
const token = process.env.MEMHOST_TOKEN;
if (pictures) mkdirSync(pictures, { recursive: true });

const began = Date.now();
const wrong = [];
const host = new Company(origin, token, 'demo');

const step = async (name, what) => {
  const from = Date.now();
  let said;
  try {
    said = await what();
  } catch (error) {
    wrong.push(`${name}: ${error.stack ?? error}`);
  }
  for (const complaint of errors.splice(0)) wrong.push(`${name}: ${complaint}`);
  console.log(`${String(Date.now() - from).padStart(6)} ms  ${name}${said ? `: ${said}` : ''}`);
};

const browser = await chromium.launch({
  executablePath: process.env.MEMHOST_CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  context.setDefaultTimeout(20000);
  await context.addInitScript(policyReports);
  const open = async (within = context) => {
    const page = await within.newPage();
    watch(page, origin);
    return page;
  };
  await step('what no page may do would be seen', () => provesItself(context, origin));
  await step('the company is filled', () => seed(host));
  const page = await open();
  const world = { host, origin, page, open, pictures };
  await step('signs in by the form', () => deeds.signIn(world, token));
  const all = {};
  await step('the pages are known', async () => { Object.assign(all, await pages(host)); });
  await step('the navigation leads to every page', () => deeds.navigation(world));
  await step('every page is read and photographed', async () => {
    const waiting = Object.entries(all);
    const work = async () => {
      const tab = await open();
      for (let next = waiting.shift(); next; next = waiting.shift()) wrong.push(...await look(tab, origin, next[0], next[1], pictures));
      await tab.close();
    };
    await Promise.all([work(), work()]);
    return `${Object.keys(all).length} pages`;
  });
  await step('keys', () => keyboard(world));
  for (const [name, deed] of deeds.all) await step(name, () => deed(world));
  await step('without JavaScript', () => withoutScript({ ...world, browser, watch }, token, Object.values(all)));
  await step('the picture of the README', () => takePicture({ ...world, browser }));
  await step('signs out', () => deeds.signOut(world));
} finally {
  await browser.close();
}
console.log(`${String(Date.now() - began).padStart(6)} ms  in all`);
if (wrong.length) {
  console.error(wrong.join('\n'));
  process.exitCode = 1;
}
