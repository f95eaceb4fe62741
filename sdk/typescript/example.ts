// Captures a note, finds it and forgets it. Give MEMHOST_URL, MEMHOST_TOKEN and MEMHOST_COMPANY.

import { memhost, type Schemas } from "memhost-client";

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

const company = variable("MEMHOST_COMPANY");
const client = memhost(variable("MEMHOST_URL"), variable("MEMHOST_TOKEN"));
const params = { path: { company } };
const scope: Schemas["Scope"] = { companyId: company };

const captured = await client.POST("/runtime/v1/companies/{company}/capture", {
  params,
  body: {
    scope,
    mode: "capture_record",
    source: { kind: "manual_note", companyId: company },
    payload: { text: "Deploys are frozen on Fridays." },
  },
});
// `error` is a Problem.
if (captured.error) throw new Error(captured.error.detail);
console.log(`captured ${captured.data.records.length} record`);

const found = await client.POST("/runtime/v1/companies/{company}/query", {
  params,
  body: { scope, query: "when may I deploy?", topK: 5 },
});
if (found.error) throw new Error(found.error.detail);
console.log(`found: ${found.data.snippets[0]?.text}`);

const forgotten = await client.POST("/runtime/v1/companies/{company}/forget", {
  params,
  body: { scope, handles: captured.data.records },
});
if (forgotten.error) throw new Error(forgotten.error.detail);
console.log(`forgotten: ${forgotten.data.outcomes[0]?.effect}`);
