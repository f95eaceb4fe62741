// Checks a recording with supermemory's own SDK. Each request of the provider must be what the SDK sends for the same
// arguments, and arguments and answers must be of the SDK's types, with no member too many.
//
// Usage: node oracle.mjs RECORDING, where `supermemory` and `typescript` are installed
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const here = createRequire(path.join(process.cwd(), "package.json"));
const { Supermemory } = await import(here.resolve("supermemory"));
const ts = here("typescript");

// The routes of the SDK: how it is called, and the types of its arguments and answers.
const ROUTES = [
  ["POST", /^\/v3\/documents$/, (sdk, body) => sdk.documents.add(body), "DocumentAddParams", "DocumentAddResponse"],
  ["GET", /^\/v3\/documents\/([^/]+)$/, (sdk, _, id) => sdk.documents.get(id), null, "DocumentGetResponse"],
  ["POST", /^\/v3\/documents\/list$/, (sdk, body) => sdk.documents.list(body), "DocumentListParams", "DocumentListResponse"],
  ["DELETE", /^\/v3\/documents\/bulk$/, (sdk, body) => sdk.documents.deleteBulk(body), "DocumentDeleteBulkParams", "DocumentDeleteBulkResponse"],
  ["PATCH", /^\/v4\/memories$/, (sdk, body) => sdk.memories.updateMemory(body), "MemoryUpdateMemoryParams", "MemoryUpdateMemoryResponse"],
  ["DELETE", /^\/v4\/memories$/, (sdk, body) => sdk.memories.forget(body), "MemoryForgetParams", "MemoryForgetResponse"],
  ["POST", /^\/v4\/search$/, (sdk, body) => sdk.search(body), "SearchMemoriesParams", "SearchMemoriesResponse"],
  ["POST", /^\/v4\/profile$/, (sdk, body) => sdk.profile(body), "ProfileParams", "ProfileResponse"],
];
// What the SDK has no routes for, by supermemory's documentation.
const DOCUMENTED = ["POST /v4/memories", "POST /v4/memories/list"];

const [head, ...exchanges] = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
const types = [...new Set(ROUTES.flatMap(([, , , params, answer]) => [params, answer]).filter(Boolean))];
const source = (type) =>
  type.startsWith("Document") ? "documents" : type.startsWith("Memory") ? "memories" : type.startsWith("Search") ? "search" : "top-level";
let code = types.map((type) => `import type { ${type} } from "supermemory/resources/${source(type)}";`).join("\n") + "\n";
const seen = {};
for (const [index, { request, status, answer }] of exchanges.entries()) {
  const name = `${request.method} ${request.path.replace(/[^/]{22}$/, "ID")}`;
  seen[name] = (seen[name] ?? 0) + 1;
  const route = ROUTES.find(([method, at]) => method === request.method && at.test(request.path));
  if (!route) {
    if (!DOCUMENTED.includes(name)) throw new Error(`the SDK has no ${name}`);
    continue;
  }
  const [, at, call, params, answered] = route;
  let sent;
  const fetch = async (url, init) => {
    sent = { method: init.method.toUpperCase(), path: new URL(url).pathname, query: new URL(url).search.slice(1),
      body: init.body ? JSON.parse(init.body) : null, authorization: new Headers(init.headers).get("authorization") };
    return new Response(JSON.stringify(answer), { status, headers: { "content-type": "application/json" } });
  };
  const sdk = new Supermemory({ apiKey: "KEY", baseURL: "http://127.0.0.1:1", fetch, maxRetries: 0 });
  const parsed = await call(sdk, request.body, at.exec(request.path)[1]);
  const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
  if (!same(sent, { ...request, authorization: "Bearer KEY" })) throw new Error(`the SDK sends ${JSON.stringify(sent)}, the provider ${JSON.stringify(request)}`);
  if (!same(parsed, answer)) throw new Error(`the SDK reads ${JSON.stringify(parsed)} of ${JSON.stringify(answer)}`);
  if (params) code += `export const sent${index}: ${params} = ${JSON.stringify(request.body)};\n`;
  code += `export const answered${index}: ${answered} = ${JSON.stringify(answer)};\n`;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

const file = path.join(process.cwd(), "recorded.mts");
writeFileSync(file, code);
const options = { noEmit: true, strict: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, types: [] };
const program = ts.createProgram([file], options);
const errors = ts.getPreEmitDiagnostics(program);
if (errors.length) {
  console.error(ts.formatDiagnostics(errors.slice(0, 10), { getCanonicalFileName: (name) => name, getCurrentDirectory: () => process.cwd(), getNewLine: () => "\n" }));
  process.exit(1);
}
console.log(`${head.of}: ${exchanges.length} exchanges, ${Object.entries(seen).map(([name, count]) => `${count} × ${name}`).join(", ")}`);
