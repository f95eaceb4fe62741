// What the parts of the plugin are given of each other. The plugin makes the parts; none of them knows the plugin.
import type { PluginContext, PluginHealthDiagnostics } from "@paperclipai/plugin-sdk";
import type { Settings } from "./config";
import type { Ledger } from "./ledger";
import type { Memory } from "./memory";
import type { Recalls } from "./recall";

export interface Context {
  readonly ctx: PluginContext;
  readonly memory: Memory;
  readonly ledger: Ledger;
  readonly recalls: Recalls;
  /** Where memhost's data of this plugin is. */
  readonly directory: string;
  settings(companyId: string): Settings;
  /** Whether Paperclip gives this company's documents, activity and secrets. */
  isConfigured(companyId: string): boolean;
  companies(): Promise<{ id: string; name: string }[]>;
}

/** What pages and routes use beside it. */
export interface Worker extends Context {
  /** Why costs of a company are not entered; null: they are. */
  readonly spending: { trouble(companyId: string): string | null };
  /** Why what a company sends waits; null: it does not. */
  held(companyId: string): string | null;
  /** With a company: as its people may read it, without the troubles of other companies. */
  health(companyId?: string): PluginHealthDiagnostics;
  /** The address of a memhost that some company's settings name, which all companies use; null: none does. */
  usedElsewhere(): string | null;
  /** Enables and disables a company one after the other. */
  inTurn<T>(companyId: string, act: () => Promise<T>): Promise<T>;
  /** Looks at Paperclip's tables soon. */
  wake(everything: boolean): void;
  /** Notes a change of memory in Paperclip's activity log. */
  wrote(companyId: string, what: string, count: number, metadata: Record<string, unknown>): Promise<void>;
}
