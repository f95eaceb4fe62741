// Several Paperclip servers on one database.
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import type { PluginContext } from "@paperclipai/plugin-sdk";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lead } from "../src/lead";
import { Ledger } from "../src/ledger";
import { MemhostPlugin } from "../src/plugin";
import { FakeHost } from "./fakes/host";

/** A memhost that answers who it is, and ends with its standard input. One directory is used by one of them. */
const PROGRAM = `#!${process.execPath}
const fs = require("node:fs");
const lock = process.cwd() + "/locked";
if (fs.existsSync(lock)) { console.error("the directory is used by another process"); process.exit(1); }
fs.writeFileSync(lock, "");
const end = () => { fs.rmSync(lock); process.exit(0); };
process.stdin.on("data", () => {}).on("end", end);
const server = require("node:http").createServer((_, answer) => answer.end(JSON.stringify({ storeId: "s", version: "9" })));
server.listen(0, "127.0.0.1", () => {
  const at = "http://127.0.0.1:" + server.address().port;
  console.log(JSON.stringify({ pid: process.pid, version: "9", storeId: "s", runtime: at, control: at }));
});
`;

let root: string;
let made: MemhostPlugin[] = [];
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "memhost-servers-"));
  writeFileSync(path.join(root, "memhost"), PROGRAM);
  chmodSync(path.join(root, "memhost"), 0o755);
  made = [];
});
afterEach(async () => {
  vi.useRealTimers();
  for (const one of made) await one.stop();
  rmSync(root, { recursive: true, force: true });
});

function server(fake: FakeHost, name: string, get: (company: string) => Promise<unknown>): MemhostPlugin {
  const nothing = { register: () => {}, on: () => {} };
  const ctx = { ...fake.host, config: { get }, events: nothing, jobs: nothing, tools: nothing, data: nothing };
  const plugin = new MemhostPlugin({ ...ctx, actions: nothing } as unknown as PluginContext, {
    pluginId: "p",
    searchPath: root,
    from: import.meta.url,
    dataRoot: root,
    server: name,
  });
  made.push(plugin);
  return plugin;
}
const none = async (): Promise<unknown> => {
  throw new Error("company context is required");
};
const until = (what: () => boolean): Promise<void> => vi.waitFor(() => expect(what()).toBe(true), 5000);

test("one server has the lease until it gives it up, ends or is not heard of", async () => {
  const { host, pg } = await FakeHost.make();
  const one = new Lead(host, "a.example 1");
  const other = new Lead(host, "b.example 2");
  expect(await one.ask()).toEqual({ isOurs: true, machine: "a.example" });
  expect(await other.ask()).toEqual({ isOurs: false, machine: "a.example" });
  expect((await one.ask()).isOurs).toBe(true);
  await other.release();
  expect((await other.ask()).isOurs).toBe(false);
  await one.release();
  expect((await other.ask()).isOurs).toBe(true);
  expect((await one.ask()).isOurs).toBe(false);
  await pg.exec(`UPDATE ${host.db.namespace}.lead SET until = now() - interval '1 second'`);
  expect((await one.ask()).isOurs).toBe(true);
  // A worker of this machine that is not there any more keeps nobody waiting.
  await pg.exec(`UPDATE ${host.db.namespace}.lead SET holder = '${hostname()} 4194304'`);
  expect((await other.ask()).isOurs).toBe(true);
});

test("the second server uses the memhost of the first, takes nothing in, and goes on when the first has ended", async () => {
  const fake = await FakeHost.make();
  await fake.company("Alpha");
  const first = server(fake, "here 1", none);
  await until(() => first.memory.isUp);
  const second = server(fake, "here 2", none);
  await until(() => second.memory.isUp);
  expect(second.memory.address?.runtime).toBe(first.memory.address?.runtime);
  expect(second.health().message).toContain("served by another server");
  await second.pump.wake(true);
  expect([second.pump.state.lastRound, second.process.state.phase]).toEqual([null, "stopped"]);
  expect(statSync(path.join(first.directory, "serving.json")).mode & 0o777).toBe(0o600);
  const before = first.memory.address?.runtime;
  await first.stop();
  await until(() => !second.memory.isUp || second.memory.address?.runtime !== before);
  await until(() => second.memory.isUp && second.process.state.phase === "up");
  await until(() => second.pump.state.lastRound !== null || second.pump.state.error !== null);
}, 30_000);

test("a company's first settings that another server saved reach this one, and no other company is asked for", async () => {
  const fake = await FakeHost.make();
  const [alpha] = [await fake.company("Alpha"), await fake.company("Beta")];
  const asked: string[] = [];
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const plugin = server(fake, "here 1", async (company) => {
    asked.push(company);
    return { agents: ["b"] };
  });
  // The other server's ledger may be about another store.
  const other = new Ledger(fake.host);
  await other.use("elsewhere", null);
  await other.setCompany(alpha, { settings: { agents: ["b"] } });
  vi.spyOn(plugin, "recover").mockResolvedValue(true);
  await vi.advanceTimersByTimeAsync(70_000);
  vi.useRealTimers();
  await until(() => plugin.settings(alpha).agents[0] === "b");
  expect(new Set(asked)).toEqual(new Set([alpha]));
});

test("settings that are told before memory is up are kept for its store, and go with their company", async () => {
  const fake = await FakeHost.make();
  const alpha = await fake.company("Alpha");
  const plugin = server(fake, "here 1", none);
  await plugin.configChanged({ agents: ["a"] }, alpha);
  const rows = async (): Promise<unknown[]> =>
    fake.host.db.query(`SELECT store, settings FROM ${fake.host.db.namespace}.companies ORDER BY store`, []);
  await until(() => plugin.memory.isUp);
  expect(await rows()).toEqual([
    { store: "", settings: { agents: ["a"] } },
    { store: "s", settings: { agents: ["a"] } },
  ]);
  await plugin.ledger.drop(alpha);
  expect(await rows()).toEqual([]);
});

test("settings that were saved at another server reach this one", async () => {
  const fake = await FakeHost.make();
  const alpha = await fake.company("Alpha");
  let row: Record<string, unknown> = { agents: ["a"] };
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const plugin = server(fake, "here 1", async () => row);
  await plugin.configChanged(row, alpha);
  row = { agents: ["b"] };
  await vi.advanceTimersByTimeAsync(70_000);
  vi.useRealTimers();
  await until(() => plugin.settings(alpha).agents[0] === "b");
});
