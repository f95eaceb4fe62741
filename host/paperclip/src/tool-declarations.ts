// The tools that agents get. Whose memory is used is known from the run and never an argument.
import type { PluginToolDeclaration } from "@paperclipai/plugin-sdk";
import { QUERY_CHARACTERS } from "./capture/text";
import type { Schema } from "./values";

/** A declared tool, whose arguments are checked by its schema. */
export type Declared = PluginToolDeclaration & { parametersSchema: Schema };

const tool = (
  name: string,
  displayName: string,
  description: string,
  properties: Record<string, Schema>,
  required: string[],
): Declared => ({
  name,
  displayName,
  description,
  parametersSchema: { type: "object", properties, required, additionalProperties: false },
});
const handle: Schema = {
  type: "string",
  minLength: 1,
  maxLength: 600,
  description: "The id of a memory, as memory.search or memory.browse gave it.",
};
const visibility: Schema = {
  type: "string",
  enum: ["company", "agent"],
  description: "Who is answered it: everybody in the company (the default), or you alone.",
};

export const TOOLS: Declared[] = [
  tool(
    "memory.search",
    "Search memory",
    "Find what the company remembers about a question. Each answer is about this query.",
    {
      query: { type: "string", minLength: 1, maxLength: QUERY_CHARACTERS },
      topK: { type: "integer", minimum: 1, maximum: 50, description: "How many memories at most; 10 if absent." },
    },
    ["query"],
  ),
  tool(
    "memory.note",
    "Remember",
    "Remember one fact that later runs need. Comments, documents and runs are remembered by themselves.",
    {
      text: { type: "string", minLength: 1, maxLength: 100000 },
      visibility,
    },
    ["text"],
  ),
  tool(
    "memory.forget",
    "Forget",
    "Forget memories that must not be kept.",
    { ids: { type: "array", items: handle, minItems: 1, maxItems: 100 } },
    ["ids"],
  ),
  tool(
    "memory.correct",
    "Correct a memory",
    "Say what a memory should say instead.",
    { id: handle, text: { type: "string", minLength: 1, maxLength: 100000 } },
    ["id", "text"],
  ),
  tool(
    "memory.browse",
    "Browse memory",
    "List memories, newest first, of your issue or of the company.",
    {
      of: { type: "string", enum: ["issue", "company"] },
      limit: { type: "integer", minimum: 1, maximum: 200 },
      cursor: { type: "string", maxLength: 4096 },
    },
    [],
  ),
];
