// The explorer without a mouse, and without scripts.

import { is } from './deeds.mjs';

/** Whether what has the focus can be seen to have it. */
const focus = () => {
  const element = document.activeElement;
  const shows = (at) => at && getComputedStyle(at).outlineStyle !== 'none' && parseFloat(getComputedStyle(at).outlineWidth) >= 1;
  const box = element.getBoundingClientRect();
  const isInside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { is: element.outerHTML.slice(0, 100), tag: element.tagName, shows: Boolean(shows(element) || shows(element.closest('tr'))), isInside };
};

export const keyboard = async ({ page, origin, host }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(`${origin}/c/${host.company}/jobs`);
  await page.keyboard.press('Tab');
  const first = await page.evaluate(focus);
  if (!first.is.includes('class="skip"') || !first.isInside) throw new Error(`first is ${first.is}`);
  await page.keyboard.press('Enter');
  is(await page.evaluate(() => document.activeElement.id), 'main', 'the link leads to');
  await page.goto(`${origin}/c/${host.company}/jobs`);
  let seen = 0;
  for (let tabs = 0; tabs < 60; tabs += 1) {
    await page.keyboard.press('Tab');
    const now = await page.evaluate(focus);
    if (now.tag === 'BODY') break;
    if (!now.shows || !now.isInside) throw new Error(`the focus is not seen on ${now.is}`);
    seen += 1;
  }
  if (seen < 20) throw new Error(`only ${seen} things have the focus in their turn`);
  await page.goto(`${origin}/c/${host.company}/jobs`);
  await page.keyboard.press('/');
  is(await page.evaluate(() => Boolean(document.activeElement.closest('[data-filter]'))), true, '/ leads to the filter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  const row = await page.evaluate(() => document.activeElement.getAttribute('href'));
  is(row, await page.locator('a.row').first().getAttribute('href'), 'j, j, k lead to');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**${row}`);
  return `${seen} things in their turn`;
};

export const withoutScript = async ({ browser, watch, origin, host }, token, paths) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  watch(page, origin);
  await page.goto(`${origin}/sign-in`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  let count = 0;
  for (const path of paths) {
    // An earlier step has deleted this thing, so it has no page.
    if (path.includes('undecided')) continue;
    const answer = await page.goto(origin + path);
    is(answer.status(), 200, path);
    const text = await page.locator('main').innerText();
    if (text.length < 40) throw new Error(`${path} reads ${JSON.stringify(text)}`);
    if (await page.getByText(/^(Loading|Connecting)/).count()) throw new Error(`${path} waits for a script`);
    count += 1;
  }
  await page.goto(`${origin}/c/${host.company}/jobs`);
  await page.getByLabel('Status').selectOption('failed');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  is(await page.locator('tbody tr').count(), (await host.control('jobs?status=failed')).items.length, 'failed jobs');
  is(await page.locator('[data-live-switch]:visible').count(), 0, 'what needs a script is shown');
  await page.goto(`${origin}/c/${host.company}/budgets`);
  await page.getByLabel('Limit (USD)').fill('77');
  await page.getByRole('button', { name: 'Set budget' }).click();
  await page.locator('[data-flash]').waitFor();
  await page.goto(`${origin}/c/${host.company}/facts?user=u1`);
  await page.getByLabel('New fact about the user').fill('Reads without scripts');
  await page.getByRole('button', { name: 'Add fact about the user' }).click();
  await page.getByText('Reads without scripts', { exact: true }).first().waitFor();
  await context.close();
  return `${count} pages`;
};
