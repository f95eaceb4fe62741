// What the steps of Enable work with.
import type { Settings } from "./config";
import type { Ledger } from "./ledger";
import type { Memory } from "./memory";
import type { Board } from "./paperclip/board";
import type { Host } from "./paperclip/host";

export interface Target {
  targetType: "company" | "agent";
  targetId: string;
}

export interface Enabling {
  host: Host;
  memory: Memory;
  ledger: Ledger;
  board: Board;
  companyId: string;
  settings: Settings;
}
