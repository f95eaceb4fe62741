// The pages in Paperclip, in a browser. Playwright comes from tests/browser; MEMHOST_CHROMIUM names another Chromium.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { api, PACKAGE, URL_OF } from "./server.mjs";

const pictures = path.join(PACKAGE, "../../target/tmp/paperclip");

async function pages_in_a_browser(world) {
  const { chromium } = createRequire(path.join(PACKAGE, "../../tests/browser/package.json"))("playwright-core");
  mkdirSync(pictures, { recursive: true });
  const prefix = (await api("GET", "/companies")).find(({ id }) => id === world.alpha).issuePrefix;
  const issue = await world.issue(world.alpha, "Ask the gulls");
  await world.comment(issue, "The gulls nest on the east pier.");
  await world.found(world.alpha, "gulls", "east pier");
  const identifier = (await api("GET", `/issues/${issue}`)).identifier;
  const browser = await chromium.launch({ executablePath: process.env.MEMHOST_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  const complaints = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => complaints.push(error.message));
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
    const link = page.locator("[data-memory] a", { hasText: identifier }).first();
    assert.equal(await link.getAttribute("href"), `/${prefix}/issues/${identifier}`);
    await link.click();
    await page.waitForURL(`**/issues/${identifier}`);
    await page.locator("summary", { hasText: "1 memory of this issue" }).click();
    await page.getByText("Made by this issue").waitFor();
    await picture("issue");
    await page.goto(`${URL_OF}/${prefix}/dashboard`);
    await page.getByText("Open memory").waitFor().catch(() => complaints.push("no widget"));
    await picture("dashboard");
    const { id } = (await api("GET", "/plugins")).find(({ pluginKey }) => pluginKey === "memhost");
    await page.goto(`${URL_OF}/${prefix}/company/settings/instance/plugins/${id}`);
    await page.getByRole("button", { name: /^(Enable|Repeat Enable)$/ }).first().click().catch(() => complaints.push("no settings"));
    await page.getByText("Done · tools").waitFor().catch(() => complaints.push("Enable did not say what it did"));
    await picture("settings");
    const address = page.url();
    assert.deepEqual(complaints, [], address);
  } finally {
    await browser.close();
  }
  return `pictures in ${pictures}`;
}

export const STEPS = [pages_in_a_browser];
