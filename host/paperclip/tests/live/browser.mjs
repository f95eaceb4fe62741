// The pages in Paperclip, in a browser. Playwright comes from tests/browser; MEMHOST_CHROMIUM names another Chromium.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { api, PACKAGE, URL_OF } from "./server.mjs";

const pictures = path.join(PACKAGE, "../../target/tmp/paperclip");

/** The explorer opens in another tab without a token to type, and links back to the issue in Paperclip. */
/** The panel of a task. While Paperclip reads the task's history it shows another one, which goes. */
const panelOf = (page, hasText) => page.getByTestId("task-chat-thread-header").locator("summary", { hasText });

async function explorer_and_back(world, page, issue) {
  const opened = page.waitForEvent("popup");
  await page.getByRole("button", { name: "Open the explorer" }).click();
  const tab = await opened;
  await tab.waitForURL(`**/c/${world.alpha}`);
  await tab.goto(`${new URL(tab.url()).origin}/c/${world.alpha}/operations?issueId=${issue}&kind=capture`);
  await tab.locator("main a[href*='/operations/0']").first().click();
  await tab.locator(`a[href="${URL_OF}/issues/${issue}"]`).first().click();
  await tab.getByText("Ask the gulls").first().waitFor();
  await tab.close();
  // Another person is not answered what this one keeps, and an agent neither.
  const mine = (await world.action(world.alpha, "search", { query: "Where do the gulls sleep?" })).memories;
  assert.ok(
    mine.some(({ text }) => text.startsWith("Only I know")),
    "this person is answered it",
  );
}

/** A browser, and the prefix of Alpha's addresses. */
async function opened(world) {
  await world.save(world.alpha, { paperclipUrl: URL_OF });
  const { chromium } = createRequire(path.join(PACKAGE, "../../tests/browser/package.json"))("playwright-core");
  mkdirSync(pictures, { recursive: true });
  const prefix = (await api("GET", "/companies")).find(({ id }) => id === world.alpha).issuePrefix;
  const browser = await chromium.launch({
    executablePath: process.env.MEMHOST_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  return { browser, prefix };
}

async function pages_in_a_browser(world) {
  const { browser, prefix } = await opened(world);
  const issue = await world.issue(world.alpha, "Ask the gulls");
  await world.comment(issue, "The gulls nest on the east pier.");
  await world.found(world.alpha, "gulls", "east pier");
  const identifier = (await api("GET", `/issues/${issue}`)).identifier;
  const errors = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => errors.push(error.message));
    const picture = (name) => page.screenshot({ path: path.join(pictures, `${name}.png`) });
    await page.goto(`${URL_OF}/${prefix}/memory`);
    await page.getByRole("heading", { name: "Memory", exact: true }).waitFor();
    await page.getByText("Everything that you may read").waitFor();
    await page.getByLabel("Search memory").fill("Where do the gulls nest?");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator("[data-memory]").filter({ hasText: "east pier" }).first().waitFor();
    await page.getByRole("button", { name: "Helpful", exact: true }).click();
    await page.getByText("Marked as helpful.").waitFor();
    await picture("page");
    await page.getByLabel("What to remember").fill("Only I know where the gulls sleep.");
    await page.getByLabel("Who may read it").selectOption({ label: "Only me" });
    await page.getByRole("button", { name: "Remember", exact: true }).click();
    await page.getByText("Noted").waitFor();
    await explorer_and_back(world, page, issue);
    const link = page.locator("[data-memory] a", { hasText: identifier }).first();
    assert.equal(await link.getAttribute("href"), `/${prefix}/issues/${identifier}`);
    await link.click();
    await page.waitForURL(`**/issues/${identifier}`);
    await panelOf(page, "1 memory of this task").click();
    await page.getByText("Made by this task").waitFor();
    await picture("issue");
    await page.goto(`${URL_OF}/${prefix}/dashboard`);
    await page
      .getByText("Open memory")
      .waitFor()
      .catch(() => errors.push("no widget"));
    await picture("dashboard");
    const { id } = (await api("GET", "/plugins")).find(({ pluginKey }) => pluginKey === "memhost");
    await page.goto(`${URL_OF}/${prefix}/company/settings/instance/plugins/${id}`);
    await page
      .getByRole("button", { name: /^(Enable|Repeat Enable)$/ })
      .first()
      .click()
      .catch(() => errors.push("no settings"));
    await page
      .getByText("Done · tools")
      .waitFor()
      .catch(() => errors.push("Enable did not say what it did"));
    await picture("settings");
    const address = page.url();
    assert.deepEqual(errors, [], address);
  } finally {
    await browser.close();
  }
  return `pictures in ${pictures}`;
}

/** What of the memories on a page cannot be read or pressed: too high, out of the window, or under something else. */
const misplaced = (page) =>
  page.evaluate(() => {
    const wrong = [];
    const said = (element, what) => wrong.push(`${what}: ${element.textContent.slice(0, 40)}`);
    if (document.documentElement.scrollWidth > window.innerWidth) wrong.push("the page is wider than the window");
    for (const memory of document.querySelectorAll("[data-memory]")) {
      memory.scrollIntoView({ block: "center" });
      const place = memory.getBoundingClientRect();
      if (place.height > 420) said(memory, `${Math.round(place.height)} px high`);
      if (place.right > window.innerWidth + 1 || place.left < -1) said(memory, "out of the window");
      for (const element of memory.querySelectorAll("p, button, a")) {
        const own = element.getBoundingClientRect();
        if (own.right > place.right + 1) said(element, "out of its card");
        if (element.tagName !== "BUTTON") continue;
        const there = document.elementFromPoint((own.left + own.right) / 2, (own.top + own.bottom) / 2);
        if (there !== element && !element.contains(there)) said(element, "cannot be pressed");
      }
    }
    return wrong;
  });

/** Everything that can be reached with the keyboard shows where it is, and the deeds of a memory need no mouse. */
async function by_keyboard(page) {
  await page.getByLabel("Search memory").focus();
  await page.keyboard.type("whales");
  await page.keyboard.press("Enter");
  const memory = page.locator("[data-memory]").filter({ hasText: "Whales pass" }).first();
  await memory.waitFor();
  const focused = () =>
    page.evaluate(() => {
      const { outlineStyle, boxShadow } = getComputedStyle(document.activeElement);
      const name = document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent;
      return { name, isShown: outlineStyle !== "none" || boxShadow !== "none" };
    });
  const walkTo = async (wanted) => {
    const reached = [];
    for (let steps = 0; steps < 12 && reached.at(-1) !== wanted; steps += 1) {
      await page.keyboard.press("Tab");
      const { name, isShown } = await focused();
      assert.ok(isShown, `${name} does not show that it has the keyboard`);
      reached.push(name);
    }
    assert.equal(reached.at(-1), wanted, reached.join(", "));
    await page.keyboard.press("Enter");
  };
  await walkTo("Correct");
  assert.equal((await focused()).name, "Corrected text");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Whales pass in May.");
  await walkTo("Save");
  await page.getByText("Corrected").first().waitFor();
  await page.locator("[data-memory]").filter({ hasText: "Whales pass in May." }).first().waitFor();
}

/** Narrow, usual and wide, light and dark: a short comment, one of 78 KB and one that is a single long word. */
async function pages_fit_every_window(world) {
  const { browser, prefix } = await opened(world);
  const issue = await world.issue(world.alpha, "What does not fit");
  for (const text of [
    "Whales pass in June.",
    `Whale log. ${"A line of it.\n".repeat(5600)}`,
    `whale${"x".repeat(4000)}`,
  ])
    await world.comment(issue, text);
  await world.found(world.alpha, "When do whales pass?", "Whales pass");
  const { identifier } = await api("GET", `/issues/${issue}`);
  const { id } = (await api("GET", "/plugins")).find(({ pluginKey }) => pluginKey === "memhost");
  const wrong = [];
  try {
    for (const theme of ["light", "dark"])
      for (const width of [390, 1280, 1920]) {
        const context = await browser.newContext({ viewport: { width, height: 900 } });
        await context.addInitScript((chosen) => localStorage.setItem("paperclip.theme", chosen), theme);
        const page = await context.newPage();
        page.setDefaultTimeout(15_000);
        const look = async (name) => {
          wrong.push(...(await misplaced(page)).map((what) => `${name} ${width} ${theme}: ${what}`));
          await page.screenshot({ path: path.join(pictures, `${name}-${width}-${theme}.png`) });
        };
        await page.goto(`${URL_OF}/${prefix}/memory`);
        await page.locator("[data-memory]").filter({ hasText: "Whales pass" }).first().waitFor();
        await look("memory");
        await page.goto(`${URL_OF}/${prefix}/issues/${identifier}`);
        await panelOf(page, "of this task").click();
        await page.getByText("Made by this task").waitFor();
        await page.locator("[data-memory]").first().waitFor();
        await look("issue");
        await page.goto(`${URL_OF}/${prefix}/company/settings/instance/plugins/${id}`);
        await page
          .getByRole("button", { name: /^(Enable|Repeat Enable)$/ })
          .first()
          .waitFor();
        await look("settings");
        await page.goto(`${URL_OF}/${prefix}/dashboard`);
        await page.getByText("Open memory").waitFor();
        await look("dashboard");
        await page.getByText("Open memory").click();
        await page
          .getByText("Everything that you may read")
          .waitFor()
          .catch((error) => {
            throw new Error(`Open memory led to ${page.url()}: ${error.message}`);
          });
        if (width === 1280 && theme === "dark") await by_keyboard(page);
        await context.close();
      }
  } finally {
    await browser.close();
  }
  assert.deepEqual(wrong, []);
  return `pictures in ${pictures}`;
}

export const STEPS = [pages_in_a_browser, pages_fit_every_window];
