// The pages in Paperclip, in a browser. Playwright comes from tests/browser; MEMHOST_CHROMIUM names another Chromium.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { api, PACKAGE, URL_OF } from "./server.mjs";

const pictures = path.join(PACKAGE, "../../target/tmp/paperclip");

/** The explorer opens in another tab without a token to type, and links back to the issue in Paperclip. */
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

async function pages_in_a_browser(world) {
  await world.save(world.alpha, { paperclipUrl: URL_OF });
  const { chromium } = createRequire(path.join(PACKAGE, "../../tests/browser/package.json"))("playwright-core");
  mkdirSync(pictures, { recursive: true });
  const prefix = (await api("GET", "/companies")).find(({ id }) => id === world.alpha).issuePrefix;
  const issue = await world.issue(world.alpha, "Ask the gulls");
  await world.comment(issue, "The gulls nest on the east pier.");
  await world.found(world.alpha, "gulls", "east pier");
  const identifier = (await api("GET", `/issues/${issue}`)).identifier;
  const browser = await chromium.launch({
    executablePath: process.env.MEMHOST_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const errors = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => errors.push(error.message));
    const picture = (name) => page.screenshot({ path: path.join(pictures, `${name}.png`) });
    await page.goto(`${URL_OF}/${prefix}/memory`);
    await page.getByRole("heading", { name: "Memory", exact: true }).waitFor();
    await page.getByText("Everything that is remembered").waitFor();
    await page.getByLabel("Search memory").fill("Where do the gulls nest?");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.locator("[data-memory]").filter({ hasText: "east pier" }).first().waitFor();
    await page.getByRole("button", { name: "Helpful", exact: true }).click();
    await page.getByText("Marked as helpful.").waitFor();
    await picture("page");
    await page.getByLabel("What to remember").fill("Only I know where the gulls sleep.");
    await page.getByLabel("Who is answered it").selectOption({ label: "Only me" });
    await page.getByRole("button", { name: "Remember", exact: true }).click();
    await page.getByText("Noted").waitFor();
    await explorer_and_back(world, page, issue);
    const link = page.locator("[data-memory] a", { hasText: identifier }).first();
    assert.equal(await link.getAttribute("href"), `/${prefix}/issues/${identifier}`);
    await link.click();
    await page.waitForURL(`**/issues/${identifier}`);
    await page.locator("summary", { hasText: "1 memory of this issue" }).click();
    await page.getByText("Made by this issue").waitFor();
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

export const STEPS = [pages_in_a_browser];
