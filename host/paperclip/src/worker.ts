// What Paperclip starts.
import { definePlugin, runWorker } from "@paperclipai/plugin-sdk";
import { problemsOf } from "./config";
import { giveBackWhenIdle } from "./idle";
import { MemhostPlugin } from "./plugin";

let memory: MemhostPlugin | null = null;

const plugin = definePlugin({
  multiCompanyConfig: true,
  // Returns at once and does not fail: Paperclip does not repeat an activation that failed after a crash.
  async setup(ctx) {
    giveBackWhenIdle();
    memory = new MemhostPlugin(ctx, {
      pluginId: process.env.PAPERCLIP_PLUGIN_ID ?? "memhost",
      searchPath: process.env.PATH ?? "",
      from: import.meta.url,
    });
  },
  async onHealth() {
    return memory?.health() ?? { status: "degraded", message: "memory is starting" };
  },
  async onConfigChanged(config, scope) {
    await memory?.configChanged(config, scope?.companyId ?? null);
  },
  async onValidateConfig(config) {
    const errors = problemsOf(config);
    return errors.length === 0 ? { ok: true } : { ok: false, errors };
  },
  async onApiRequest(input) {
    return memory === null ? { status: 503, body: { error: "memory is starting" } } : memory.request(input);
  },
  async onShutdown() {
    await memory?.stop();
  },
});

export default plugin;
runWorker(plugin, import.meta.url);
