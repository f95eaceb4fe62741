// From rows of Paperclip to events of memhost.
import { createHash } from "node:crypto";
import type { Schemas } from "../memhost/client";
import type { Mark } from "../ledger";
import type { CommentRow, DocumentRow, RunRow } from "./sources";
import { parts, withoutRecalled } from "./text";

export type HookEvent = Schemas["HookEvent"];

/** What is delivered together, and the row of the ledger that says so afterwards. */
export interface Item {
  mark: Omit<Mark, "status" | "error">;
  agentId: string | null;
  /** Whether memhost has an earlier revision of it. */
  isKnown: boolean;
  events: HookEvent[];
}

/** The kinds of hooks that a binding must take. */
export const HOOK_KINDS = [
  "pre_run_hydrate",
  "post_run_capture",
  "manual_capture",
  "issue_comment_capture",
  "issue_document_capture",
] as const;

const digest = (...of: string[]): string => createHash("sha256").update(of.join("\0")).digest("hex").slice(0, 24);
const iso = (moment: string): string => new Date(moment).toISOString();

/**
 * Makes one event of each part of a text. The first one replaces the revision before, if there can be one: looking for it
 * takes memhost time with every record. The others are linked to it.
 */
function events(
  id: string,
  revision: string,
  replaces: boolean,
  text: string,
  event: Omit<HookEvent, "hookId" | "payload" | "metadata">,
  metadata: Record<string, unknown>,
): HookEvent[] {
  if (text.trim() === "") return [];
  const pieces = parts(text);
  return pieces.map((piece, index) => ({
    ...event,
    hookId: `${id}:${revision}${pieces.length > 1 ? `:${index + 1}` : ""}`,
    replacesSource: replaces && index === 0,
    payload: { text: piece, mimeType: "text/markdown" },
    metadata:
      pieces.length > 1 ? { ...metadata, part: index + 1, parts: pieces.length, whole: `${id}:${revision}` } : metadata,
  }));
}

export function ofComment(row: CommentRow): Item {
  const isEdited = row.known !== null || iso(row.moved_at) !== iso(row.changed_at);
  const made = events(
    `comment:${row.id}`,
    digest(row.revision, iso(row.moved_at)),
    isEdited,
    row.agent_id === null ? row.body : withoutRecalled(row.body),
    {
      hookKind: "issue_comment_capture",
      // The newer event wins, and what was forgotten before an edit stays forgotten without it.
      triggeredAt: iso(isEdited ? row.moved_at : row.changed_at),
      mode: "capture_record",
      actorAgentId: row.agent_id,
      heartbeatRunId: row.run_id,
      scope: { companyId: row.company_id, projectId: row.project_id, issueId: row.issue_id, runId: row.run_id },
      source: {
        kind: "issue_comment",
        companyId: row.company_id,
        issueId: row.issue_id,
        commentId: row.id,
        runId: row.run_id,
      },
    },
    row.user_id === null ? {} : { authorUserId: row.user_id },
  );
  return {
    mark: mark("comment", row, null, made.length),
    agentId: row.agent_id,
    isKnown: row.known === "sent",
    events: made,
  };
}

export function ofRun(row: RunRow): Item {
  const made = events(
    `run:${row.id}`,
    digest(row.revision),
    true,
    withoutRecalled(row.body ?? ""),
    {
      hookKind: "post_run_capture",
      // A run whose comment was deleted becomes a source of its own again, now.
      triggeredAt: row.known === null ? iso(row.changed_at) : new Date().toISOString(),
      mode: "capture_residue",
      actorAgentId: row.agent_id,
      heartbeatRunId: row.id,
      scope: {
        companyId: row.company_id,
        agentId: row.agent_id,
        projectId: row.project_id,
        issueId: row.issue_id,
        runId: row.id,
      },
      source: { kind: "run", companyId: row.company_id, issueId: row.issue_id, runId: row.id },
    },
    { status: row.status },
  );
  return {
    mark: mark("run", row, null, made.length),
    agentId: row.agent_id,
    isKnown: row.known === "sent",
    events: made,
  };
}

/** What Paperclip says of a document. */
export interface DocumentText {
  body: string;
  title: string | null;
  revisionNumber: number;
  agentId: string | null;
  userId: string | null;
}

export function ofDocument(row: DocumentRow, text: DocumentText): Item {
  const made = events(
    `document:${row.id}`,
    `r${text.revisionNumber}`,
    // Also a first revision: a document of this key may have been deleted, and it has the same source.
    true,
    text.body,
    {
      hookKind: "issue_document_capture",
      triggeredAt: iso(row.changed_at),
      mode: "capture_record",
      actorAgentId: text.agentId,
      scope: { companyId: row.company_id, projectId: row.project_id, issueId: row.issue_id },
      source: { kind: "issue_document", companyId: row.company_id, issueId: row.issue_id, documentKey: row.key },
    },
    {
      revision: text.revisionNumber,
      ...(text.title === null ? {} : { title: text.title }),
      ...(text.userId === null ? {} : { authorUserId: text.userId }),
    },
  );
  return {
    mark: mark("document", row, row.key, made.length),
    agentId: text.agentId,
    isKnown: row.known === "sent",
    events: made,
  };
}

function mark(
  kind: Mark["kind"],
  row: CommentRow | RunRow | DocumentRow,
  key: string | null,
  count: number,
): Item["mark"] {
  return {
    kind,
    source_id: row.id,
    company_id: row.company_id,
    issue_id: row.issue_id,
    document_key: key,
    revision: row.revision,
    parts: count,
  };
}
