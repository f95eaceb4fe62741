// Two companies, an agent whose runs need no model, and the plugin, in a real Paperclip.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { api, PACKAGE, processes, until } from "./server.mjs";

export class World {
  static async make(server) {
    const world = new World();
    world.server = server;
    world.alpha = (await api("POST", "/companies", { name: "Alpha" })).id;
    world.beta = (await api("POST", "/companies", { name: "Beta" })).id;
    world.agent = await world.hire(world.alpha, "Ada", 'echo "The lighthouse of Alpha has 143 steps."');
    server.cli("plugin", "install", PACKAGE);
    await world.up();
    return world;
  }

  /** An agent that runs a shell script. */
  async hire(company, name, script) {
    const directory = path.join(this.server.data, "scripts");
    mkdirSync(directory, { recursive: true });
    const file = path.join(directory, `${name}-${company}.sh`);
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    chmodSync(directory, 0o755);
    return (
      await api("POST", `/companies/${company}/agents`, {
        name,
        role: "engineer",
        adapterType: "process",
        adapterConfig: { command: file, args: [] },
      })
    ).id;
  }

  /** Saves settings of the plugin; null removes one. */
  async save(company, change) {
    const saved = await api("GET", `/plugins/memhost/config?companyId=${company}`);
    const configJson = Object.fromEntries(
      Object.entries({ ...saved?.configJson, ...change }).filter(([, value]) => value !== null),
    );
    await api("POST", "/plugins/memhost/config", { companyId: company, configJson });
  }

  /** A secret of the company, as settings name it. */
  async secret(company, value) {
    const { id } = await api("POST", `/companies/${company}/secrets`, { name: `live-${Date.now()}`, value });
    return { type: "secret_ref", secretId: id, version: "latest" };
  }

  action = async (company, key, params = {}) =>
    (await api("POST", "/plugins/memhost/bridge/action", { key, companyId: company, params })).data;
  page = async (company, key, params = {}) =>
    (await api("POST", "/plugins/memhost/bridge/data", { key, companyId: company, params })).data;
  status = (company = this.alpha) => api("GET", `/plugins/memhost/api/status?companyId=${company}`);
  up = () => until("memhost is up", async () => (await this.status()).details.phase === "up", 60_000);
  issue = async (company, title, more = {}) =>
    (await api("POST", `/companies/${company}/issues`, { title, ...more })).id;
  comment = async (issue, body) => (await api("POST", `/issues/${issue}/comments`, { body })).id;
  search = async (company, query) =>
    (await api("GET", `/plugins/memhost/api/search?companyId=${company}&query=${encodeURIComponent(query)}`)).memories;
  found = (company, query, text, milliseconds) =>
    until(
      `${JSON.stringify(text)} is found`,
      // While a capture is being written, its source is no more than its provider's claim.
      async () =>
        (await this.search(company, query)).find(({ text: of, source }) => of.includes(text) && source !== null),
      milliseconds,
    );
  lost = (company, query, text, milliseconds) =>
    until(
      `${JSON.stringify(text)} is forgotten`,
      async () => !(await this.search(company, query)).some((memory) => memory.text.includes(text)),
      milliseconds,
    );
  memhosts = () => processes("memhost/paperclip/", "serve", "--exit-with-stdin").filter((pid) => pid !== process.pid);
  workers = () => processes("dist/worker.js");
}
