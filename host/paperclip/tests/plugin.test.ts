import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { PluginContext } from "@paperclipai/plugin-sdk";
import { expect, test } from "vitest";
import { MemhostPlugin } from "../src/plugin";
import { FakeHost } from "./fakes/host";

test("a worker that is started again asks for the settings that it is not told", async () => {
  const fake = await FakeHost.make();
  const [alpha, beta] = [await fake.company("Alpha"), await fake.company("Beta")];
  const asked: string[] = [];
  let refuses = true;
  const nothing = { register: () => {}, on: () => {} };
  const config = {
    get: async (company: string) => {
      asked.push(company);
      if (refuses || company !== alpha) throw new Error("company context is required");
      return { paperclipUrl: "http://127.0.0.1:3100", agents: ["a"] };
    },
  };
  const dataRoot = mkdtempSync(path.join(tmpdir(), "memhost-plugin-"));
  const ctx = {
    ...fake.host,
    config,
    events: nothing,
    jobs: nothing,
    tools: nothing,
    data: nothing,
    actions: nothing,
  } as unknown as PluginContext;
  const environment = { pluginId: "p", searchPath: "", from: import.meta.url, dataRoot };
  const before = new MemhostPlugin(ctx, environment);
  // It is told them before memory is up.
  await before.configChanged({ agents: ["a"] }, alpha);
  await before.stop();
  const plugin = new MemhostPlugin(ctx, environment);
  try {
    await plugin.recover();
    expect(plugin.isConfigured(alpha)).toBe(false);
    refuses = false;
    await plugin.recover();
    expect([plugin.isConfigured(alpha), plugin.isConfigured(beta)]).toEqual([true, false]);
    // Paperclip logs an error for a question about a company that has no settings.
    expect(asked).not.toContain(beta);
    expect(plugin.settings(alpha)).toMatchObject({ paperclipUrl: "http://127.0.0.1:3100", agents: ["a"] });
    // What an operator saves meanwhile is not overwritten with what was asked for before.
    await plugin.configChanged({ agents: [] }, alpha);
    await plugin.recover();
    expect(plugin.settings(alpha).agents).toEqual([]);
  } finally {
    await plugin.stop();
    rmSync(dataRoot, { recursive: true, force: true });
  }
});
