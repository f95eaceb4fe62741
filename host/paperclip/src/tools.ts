// The agents' tools. Paperclip says whose run it is; nothing of it is taken from the arguments.
import { createHash } from "node:crypto";
import type { PluginContext, ToolResult, ToolRunContext } from "@paperclipai/plugin-sdk";
import { clip, cut, marked, named, quoted } from "./capture/text";
import { takesPart, type Settings } from "./config";
import { must, saying, type Schemas } from "./memhost/client";
import type { Memory } from "./memory";
import type { Host } from "./paperclip/host";
import { namesOf, runOf, type Named } from "./paperclip/runs";
import { scopeOf, type Recalls } from "./recall";
import { TOOLS } from "./tool-declarations";
import { checked } from "./values";

interface Asked {
  companyId: string;
  agentId: string;
  runId: string;
  issueId: string | null;
  projectId: string | null;
}
type Arguments = Record<string, unknown>;
type Tool = (asked: Asked, given: Arguments) => Promise<ToolResult>;

const SHOWN_BYTES = 4000;

export interface Parts {
  host: Host;
  memory: Memory;
  recalls: Recalls;
  settings(companyId: string): Settings;
  onWrite(asked: Asked, what: string, records: number): Promise<void>;
}

export function registerTools(tools: PluginContext["tools"], parts: Parts): void {
  const made = implementations(parts);
  for (const declared of TOOLS) {
    const tool = made[declared.name];
    if (tool === undefined) throw new Error(`${declared.name} is declared and not implemented`);
    tools.register(declared.name, declared, async (given, context) => {
      try {
        const arguments_ = checked(declared.parametersSchema, given) as Arguments;
        const asked = await askedBy(parts.host, context);
        if (!takesPart(parts.settings(asked.companyId), asked.agentId))
          return { error: "This agent does not use memory: it is not in the pilot." };
        await parts.memory.prepare(asked.companyId);
        return await tool(asked, arguments_);
      } catch (error) {
        return { error: saying(error) };
      }
    });
  }
}

async function askedBy(host: Host, { companyId, agentId, runId, projectId }: ToolRunContext): Promise<Asked> {
  const run = await runOf(host, companyId, runId);
  if (run !== null && run.agentId !== agentId) throw new Error("this run is another agent's");
  return { companyId, agentId, runId, issueId: run?.issueId ?? null, projectId: run?.projectId ?? (projectId || null) };
}

function implementations({ host, memory, recalls, onWrite }: Parts): Record<string, Tool> {
  const path = (asked: Asked) => ({ path: { company: asked.companyId } });
  const source = (asked: Asked): Schemas["SourceRef"] => ({
    kind: "manual_note",
    companyId: asked.companyId,
    issueId: asked.issueId,
    runId: asked.runId,
  });
  return {
    "memory.search": async (asked, given) => {
      const found = await recalls.search(
        { ...asked, query: String(given.query), way: "tool" },
        Number(given.topK ?? 10),
      );
      if (found.found === 0)
        return {
          content: `Nothing was recalled: ${found.skipped}.`,
          data: { recallId: found.id, skipped: found.skipped, memories: [] },
        };
      const names = await namesOf(host, asked.companyId, found.snippets.flatMap(cited));
      return {
        content: marked(found.snippets.map((snippet) => line(snippet, names)).join("\n")),
        data: { recallId: found.id, skipped: null, memories: found.snippets.map(shown) },
      };
    },
    "memory.note": async (asked, given) => {
      const text = String(given.text);
      const answer = await must(
        memory.use.POST("/runtime/v1/companies/{company}/records", {
          // The same note of the same run is one note, however often the call is repeated.
          params: {
            ...path(asked),
            header: {
              "idempotency-key": createHash("sha256")
                .update(`${asked.runId}\0${text}\0${String(given.visibility)}`)
                .digest("hex"),
            },
          },
          body: {
            scope: scopeOf(asked),
            source: source(asked),
            records: [{ text }],
            visibility: given.visibility === "agent" ? "agent" : "company",
          },
        }),
      );
      await onWrite(asked, "noted", answer.records.length);
      return { content: "Noted.", data: { ids: answer.records.map(nameOf) } };
    },
    "memory.forget": async (asked, given) => {
      const handles = (given.ids as string[]).map(handleOf);
      const answer = await must(
        memory.use.POST("/runtime/v1/companies/{company}/forget", {
          params: path(asked),
          body: { scope: scopeOf(asked), handles },
        }),
      );
      await onWrite(asked, "forgot", handles.length);
      return {
        content: answer.outcomes.map(({ handle, effect }) => `${nameOf(handle)}: ${effect}`).join("\n"),
        data: { outcomes: answer.outcomes },
      };
    },
    "memory.correct": async (asked, given) => {
      const handle = handleOf(String(given.id));
      const answer = await must(
        memory.use.POST("/runtime/v1/companies/{company}/correct", {
          params: path(asked),
          body: { scope: scopeOf(asked), handle, patch: { record: { text: String(given.text) } } },
        }),
      );
      await onWrite(asked, "corrected", 1);
      return { content: "Corrected.", data: answer };
    },
    "memory.browse": async (asked, given) => {
      const ofIssue = given.of !== "company" && asked.issueId !== null;
      const answer = await must(
        memory.use.POST("/runtime/v1/companies/{company}/list", {
          params: path(asked),
          body: {
            scope: scopeOf(asked),
            limit: Number(given.limit ?? 50),
            ...(ofIssue ? { filter: { issueId: asked.issueId } } : {}),
            ...(typeof given.cursor === "string" ? { cursor: given.cursor } : {}),
          },
        }),
      );
      const names = await namesOf(host, asked.companyId, answer.items.flatMap(cited));
      const more = answer.nextCursor ? `\nMore with cursor ${answer.nextCursor}` : "";
      return {
        content:
          answer.items.length === 0
            ? "Nothing is remembered here."
            : marked(answer.items.map((snippet) => line(snippet, names)).join("\n")) + more,
        data: { memories: answer.items.map(shown), cursor: answer.nextCursor ?? null },
      };
    },
  };
}

/** A memory's id as agents and pages see it. */
export const nameOf = ({ providerKey, providerRecordId }: Schemas["RecordHandle"]): string =>
  `${providerKey}/${providerRecordId}`;

export function handleOf(name: string): Schemas["RecordHandle"] {
  const slash = name.indexOf("/");
  if (slash < 1 || slash === name.length - 1)
    throw new Error(`${JSON.stringify(clip(name, 80))} is no id of a memory; memory.search gives them`);
  return { providerKey: name.slice(0, slash), providerRecordId: name.slice(slash + 1) };
}

const shown = (snippet: Schemas["Snippet"]) => ({
  id: nameOf(snippet.handle),
  text: snippet.text,
  score: snippet.score ?? null,
  source: snippet.source ?? null,
  writtenBy: snippet.writtenBy ?? null,
  corrected: snippet.corrected ?? null,
  createdAt: snippet.createdAt ?? null,
  happenedAt: snippet.happenedAt ?? null,
});

const agentOf = (principal: string): string => principal.replace(/^(integration:.* as )?agent:/, "");

/** Who wrote it: an agent by id, or whoever memhost names. */
const writerOf = ({ scope, source: of, writtenBy }: Schemas["Snippet"]): string | null => {
  const named = of?.assertedBy ?? writtenBy;
  return scope?.agentId ?? (named ? agentOf(named) : null);
};

/** The ids whose names a memory is shown with. */
const cited = (snippet: Schemas["Snippet"]): string[] =>
  [snippet.source?.issueId, writerOf(snippet), snippet.corrected && agentOf(snippet.corrected.by)].filter(
    (id) => typeof id === "string",
  );

function line(snippet: Schemas["Snippet"], names: Map<string, Named>): string {
  const text = cut(snippet.text, SHOWN_BYTES);
  const called = (id: string): string => named(names.get(id)?.name ?? id);
  const { source, corrected } = snippet;
  const writer = writerOf(snippet);
  const about = [
    source?.kind.replaceAll("_", " "),
    source?.issueId && names.has(source.issueId) ? called(source.issueId) : undefined,
    writer === null ? undefined : `by ${called(writer)}`,
    (snippet.happenedAt ?? snippet.createdAt)?.slice(0, 10),
    corrected ? `corrected by ${called(agentOf(corrected.by))} on ${corrected.at.slice(0, 10)}` : undefined,
  ].filter((part) => part !== undefined);
  const more = text.length < snippet.text.length ? "\n(cut here)" : "";
  return `[${named(nameOf(snippet.handle))}] (${about.join(", ")})\n${quoted(text)}${more}`;
}
