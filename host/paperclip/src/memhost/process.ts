// The memhost of this worker: a child that ends when the worker's end of its standard input closes.
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { clip } from "../capture/text";
import type { Running } from "./client";
import { findMemhost, PLATFORM_PACKAGE } from "./binary";
import { backAddress, keepPort, lastPort, makePrivate } from "./directories";

export type Phase = "starting" | "up" | "missing" | "down" | "stopped";

export interface ProcessState {
  phase: Phase;
  pid: number | null;
  since: string;
  restarts: number;
  version: string | null;
  error: string | null;
}

export interface ProcessOptions {
  directory: string;
  searchPath: string;
  from: string;
  onUp(running: Running): void;
  onDown(error: string): void;
  /** The first pause before a restart in milliseconds; it doubles up to 5 s. */
  pauseMs?: number;
}

/** The default cache is for a host that has a machine of its own. */
const SHARED = 'store_cache_bytes = "8MiB"\n';

interface Printed {
  pid: number;
  version: string;
  storeId: string;
  runtime: string;
  control: string;
}

export class MemhostProcess {
  state: ProcessState = {
    phase: "starting",
    pid: null,
    since: new Date().toISOString(),
    restarts: 0,
    version: null,
    error: null,
  };
  private child: ChildProcess | null = null;
  private timer: NodeJS.Timeout | null = null;
  private failures = 0;
  private upSince = 0;
  private portIsTaken = false;

  constructor(private readonly options: ProcessOptions) {}

  /** Returns at once. What goes wrong is in `state`, and is tried again. */
  start(): void {
    if (this.state.phase === "stopped" || this.child !== null) return;
    const binary = findMemhost(this.options.searchPath, this.options.from);
    if (binary === null) {
      this.enter(
        "missing",
        `there is no memhost on PATH (${this.options.searchPath}) and no package ${PLATFORM_PACKAGE}; install one of them, it is found within 3 s`,
      );
      this.later((this.options.pauseMs ?? 100) * 30);
      return;
    }
    try {
      makePrivate(this.options.directory);
      this.run(binary);
    } catch (error) {
      this.ended(`memhost did not start: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Ends memhost and waits until it has ended, at most 8 s. */
  async stop(): Promise<void> {
    this.enter("stopped", null);
    if (this.timer !== null) clearTimeout(this.timer);
    const child = this.child;
    if (child === null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin?.end();
    const forced = setTimeout(() => child.kill("SIGKILL"), 8000);
    await ended;
    clearTimeout(forced);
  }

  /** Starts again after `stop`. */
  restart(): void {
    this.enter("starting", null);
    this.start();
  }

  private run(binary: string): void {
    const token = `mh_${randomBytes(32).toString("base64url")}`;
    const port = this.portIsTaken ? 0 : lastPort(this.options.directory);
    const flags = [
      "--listen",
      `127.0.0.1:${port}`,
      "--control-listen",
      "127.0.0.1:0",
      "--exit-with-stdin",
      "--token-from-stdin",
      "--print-address",
      "json",
    ];
    const back = backAddress(this.options.directory);
    // The explorer links what it shows to Paperclip's pages.
    if (back !== null)
      flags.push("--issue-link", `${back}/issues/{issueId}`, "--run-link", `${back}/agents/{agentId}/runs/{runId}`);
    flags.push("--config", this.configuration());
    const child = spawn(binary, ["serve", "--data-dir", path.join(this.options.directory, "data"), ...flags], {
      cwd: this.options.directory,
      stdio: ["pipe", "pipe", "pipe"],
      // Its threads share two heaps and cache no freed memory: a backfill leaves about 30 MiB less behind, and takes just
      // as long.
      env: {
        PATH: this.options.searchPath,
        MEMHOST_LOG: "warn",
        _RJEM_MALLOC_CONF: "narenas:2,tcache:false",
      },
    });
    this.child = child;
    this.enter("starting", null);
    let complaint = "";
    let printed = "";
    child.stderr?.on("data", (part: Buffer) => (complaint = (complaint + part.toString("utf8")).slice(-4000)));
    child.stdout?.on("data", (part: Buffer) => {
      if (this.state.phase !== "starting" || printed.length > 65536) return;
      printed += part.toString("utf8");
      const end = printed.indexOf("\n");
      if (end >= 0) this.printed(printed.slice(0, end), token);
    });
    child.stdin?.on("error", () => {});
    child.stdin?.write(`${token}\n`);
    const finish = (why: string): void => {
      if (this.child !== child) return;
      this.child = null;
      const last = complaint.trim().split("\n").pop();
      this.ended(last ? `${why}: ${last}` : why);
    };
    child.once("error", (error) => finish(`memhost did not start (${error.message})`));
    child.once("exit", (code, signal) => finish(`memhost ended (${signal ?? `code ${code}`})`));
  }

  /** The operator's own configuration, else one for a host that shares its machine with Paperclip. */
  private configuration(): string {
    const own = path.join(this.options.directory, "memhost.toml");
    if (existsSync(own)) return own;
    const shared = path.join(this.options.directory, "shared.toml");
    writeFileSync(shared, SHARED, { mode: 0o600 });
    return shared;
  }

  private printed(line: string, token: string): void {
    let address: Printed;
    try {
      address = JSON.parse(line) as Printed;
      keepPort(this.options.directory, Number(new URL(address.runtime).port));
    } catch (error) {
      this.enter(
        "starting",
        `memhost printed ${JSON.stringify(clip(line, 200))} instead of its address (${error instanceof Error ? error.message : String(error)})`,
      );
      this.child?.kill("SIGKILL");
      return;
    }
    this.upSince = Date.now();
    this.portIsTaken = false;
    this.state = { ...this.state, pid: address.pid, version: address.version };
    this.enter("up", null);
    this.options.onUp({
      runtime: address.runtime,
      control: address.control,
      token,
      storeId: address.storeId,
      pid: address.pid,
    });
  }

  private ended(error: string): void {
    if (this.state.phase === "stopped") return;
    const wasUp = this.state.phase === "up";
    // The port of the last start may be another program's by now; every second try takes a new one.
    if (!wasUp) this.portIsTaken = !this.portIsTaken;
    this.failures = wasUp && Date.now() - this.upSince > 10_000 ? 1 : this.failures + 1;
    this.state = { ...this.state, pid: null, restarts: this.state.restarts + 1 };
    this.enter("down", error);
    if (wasUp) this.options.onDown(error);
    this.later(Math.min(5000, (this.options.pauseMs ?? 100) * 2 ** Math.min(this.failures - 1, 6)));
  }

  private later(milliseconds: number): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), milliseconds);
    this.timer.unref();
  }

  private enter(phase: Phase, error: string | null): void {
    if (this.state.phase !== phase || this.state.error !== error)
      this.state = { ...this.state, phase, error, since: new Date().toISOString() };
  }
}
