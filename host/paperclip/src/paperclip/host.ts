// The part of the plugin's context that the modules use, so that tests can stand in for it.
import type { PluginContext } from "@paperclipai/plugin-sdk";

export type Host = Pick<PluginContext, "db" | "logger" | "issues" | "activity" | "secrets" | "skills" | "config">;
