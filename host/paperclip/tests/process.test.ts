import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findMemhost, PLATFORM_PACKAGE } from "../src/memhost/binary";
import { backAddress, directoryOf, keepBackAddress } from "../src/memhost/directories";
import type { Running } from "../src/memhost/client";
import { MemhostProcess } from "../src/memhost/process";

let root: string;
let made: MemhostProcess[] = [];

/** A program memhost that prints an address and ends with its standard input. */
const PROGRAM = `#!${process.execPath}
const fs = require("node:fs");
const say = (what) => fs.appendFileSync(process.cwd() + "/said", what + "\\n");
say(JSON.stringify(process.argv.slice(2)));
let all = "";
process.stdin.on("data", (part) => {
  all += part;
  if (!all.includes("\\n")) return;
  say("token " + all.trim());
  if (fs.existsSync(process.cwd() + "/broken")) { console.error("the directory is locked"); process.exit(1); }
  const port = Number(process.argv[process.argv.indexOf("--listen") + 1].split(":")[1]) || 4567;
  console.log(JSON.stringify({ pid: process.pid, version: "9", storeId: "s", runtime: "http://127.0.0.1:" + port, control: "http://127.0.0.1:4568" }));
});
process.stdin.on("end", () => { say("ended"); process.exit(0); });
`;

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "memhost-plugin-"));
  made = [];
});
afterEach(async () => {
  for (const one of made) await one.stop();
  rmSync(root, { recursive: true, force: true });
});

const install = (): void => {
  writeFileSync(path.join(root, "memhost"), PROGRAM);
  chmodSync(path.join(root, "memhost"), 0o755);
};
const directory = (): string => path.join(root, "data");
const said = (): string[] => readFileSync(path.join(directory(), "said"), "utf8").trim().split("\n");

function start(): { ups: Running[]; downs: string[]; process: MemhostProcess } {
  const ups: Running[] = [];
  const downs: string[] = [];
  const own = new MemhostProcess({
    directory: directory(),
    searchPath: root,
    from: import.meta.url,
    onUp: (running) => ups.push(running),
    onDown: (error) => downs.push(error),
    pauseMs: 20,
  });
  made.push(own);
  own.start();
  return { ups, downs, process: own };
}
async function until(is: () => boolean): Promise<void> {
  for (let round = 0; round < 400 && !is(); round += 1) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(is()).toBe(true);
}

test("it is told its token on standard input, not in its arguments, and a new one each start", async () => {
  install();
  const { ups, process: own } = start();
  await until(() => ups.length === 1);
  expect(said()[0]).not.toContain("mh_");
  expect(said()[1]).toBe(`token ${ups[0]?.token}`);
  expect(ups[0]?.token).toMatch(/^mh_.{40,}$/);
  process.kill(ups[0]?.pid ?? 0, "SIGKILL");
  await until(() => ups.length === 2);
  expect(ups[1]?.token).not.toBe(ups[0]?.token);
  expect(own.state).toMatchObject({ phase: "up", restarts: 1 });
});

test("it is started again on the same port after it was killed", async () => {
  install();
  const { ups, downs } = start();
  await until(() => ups.length === 1);
  process.kill(ups[0]?.pid ?? 0, "SIGKILL");
  await until(() => ups.length === 2);
  expect(downs).toHaveLength(1);
  expect(ups[1]?.runtime).toBe(ups[0]?.runtime);
});

test("stop lets it end by itself and does not start it again", async () => {
  install();
  const { ups, process: own } = start();
  await until(() => ups.length === 1);
  await own.stop();
  expect(said().at(-1)).toBe("ended");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(ups).toHaveLength(1);
  expect(existsSync(`/proc/${ups[0]?.pid}`)).toBe(false);
});

test("what it says when it does not start is told, and it is tried again", async () => {
  install();
  const { ups, process: own } = start();
  await until(() => ups.length === 1);
  writeFileSync(path.join(directory(), "broken"), "");
  process.kill(ups[0]?.pid ?? 0, "SIGKILL");
  await until(() => own.state.error?.includes("the directory is locked") ?? false);
  rmSync(path.join(directory(), "broken"));
  await until(() => ups.length === 2);
});

test("a program that is not there is told, and found when it is installed", async () => {
  const { ups, process: own } = start();
  expect(own.state.phase).toBe("missing");
  expect(own.state.error).toContain("no memhost on PATH");
  install();
  await until(() => ups.length === 1);
});

test("without one on PATH the platform package's program is taken", () => {
  install();
  const target = path.join(root, "node_modules", ...PLATFORM_PACKAGE.split("/"));
  execFileSync(process.execPath, ["platform.mjs", path.join(root, "memhost"), target]);
  const from = `file://${path.join(root, "dist", "worker.js")}`;
  expect(findMemhost("/nowhere", from)).toBe(path.join(target, "memhost"));
  expect(findMemhost(root, from)).toBe(path.join(root, "memhost"));
});

test("the explorer links to Paperclip where somebody opened it from there, and an operator's own configuration is used", async () => {
  install();
  const { ups, process: own } = start();
  await until(() => ups.length === 1);
  expect(said()[0]).not.toContain("link");
  expect(said()[0]).toContain("shared.toml");
  keepBackAddress(directory(), "https://paperclip.test");
  writeFileSync(path.join(directory(), "memhost.toml"), "");
  await own.stop();
  own.restart();
  await until(() => ups.length === 2);
  const flags = JSON.parse(said().findLast((line) => line.startsWith("[")) ?? "[]") as string[];
  expect(flags).toEqual(
    expect.arrayContaining([
      "--issue-link",
      "https://paperclip.test/issues/{issueId}",
      "--run-link",
      "https://paperclip.test/agents/{agentId}/runs/{runId}",
      "--config",
      path.join(directory(), "memhost.toml"),
    ]),
  );
  writeFileSync(path.join(directory(), "paperclip"), "file:///etc");
  expect(backAddress(directory())).toBeNull();
});

test("a plugin id cannot name a directory elsewhere", () => {
  expect(() => directoryOf(root, "../x")).toThrow("is not a directory name");
  expect(() => directoryOf(root, "")).toThrow("is not a directory name");
});
