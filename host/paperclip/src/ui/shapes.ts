// What the worker's pages.ts answers.
import type { preview } from "../backfill";
import type { costsOf } from "../costs";
import type { Ledger } from "../ledger";
import type { Leftover } from "../memhost/leftovers";
import type { Worker } from "../context";

export interface Shown {
  id: string;
  text: string;
  kind: string | null;
  issueId: string | null;
  issue: { name: string; key: string } | null;
  runId: string | null;
  agent: string | null;
  createdAt: string | null;
  score: number | null;
}

export interface RecallRow {
  id: string;
  issue_id: string | null;
  run_id: string | null;
  way: string;
  found: number;
  skipped: string | null;
  marks: Record<string, boolean>;
  at: string;
}

export interface Overview {
  health: ReturnType<Worker["health"]>;
  explorer: string | null;
  agents: { id: string; name: string }[];
  counts: Awaited<ReturnType<Ledger["counts"]>>;
  attention: Awaited<ReturnType<Ledger["troubles"]>>;
  held: string | null;
  /** How many wait at least; null: not known. */
  reviews: number | null;
  hasMoreReviews: boolean;
  /** False while memory is down: the numbers are not known then. */
  isCounted: boolean;
  /** Whether Paperclip gives documents, costs and activity of the company. */
  isConfigured: boolean;
  costs: Awaited<ReturnType<typeof costsOf>> | null;
  backfill: { waits: boolean; estimateCents: number | null };
  backlog: Awaited<ReturnType<typeof preview>>;
  recalls: RecallRow[];
  enabled: Record<string, unknown> | null;
}

export interface SettingsAnswer {
  settings: {
    paperclipUrl: string | null;
    browserUrl: string | null;
    memhostUrl: string | null;
    deleteDirectories: string[];
    agents: string[];
    eraseGraceSeconds: number;
    hasBoardToken: boolean;
    hasMemhostToken: boolean;
  };
  /** What is wrong with the board API key, or will be within a week. */
  keyTrouble: string | null;
  health: Overview["health"];
  agents: Overview["agents"];
  directory: string;
  /** The address of the memhost that all companies use, where settings name one. */
  elsewhere: string | null;
  enabled: Record<string, unknown> | null;
  leftovers: Leftover[];
}

export interface Steps {
  steps: { step: string; done: boolean; says: string }[];
}
