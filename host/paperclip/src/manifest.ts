// What Paperclip reads before it starts the worker.
import type { PaperclipPluginManifestV1, PluginApiRouteDeclaration } from "@paperclipai/plugin-sdk";
import { SKILL } from "./skill";
import { TOOLS } from "./tool-declarations";
import { VERSION } from "./version";

type Route = Omit<PluginApiRouteDeclaration, "capability">;
const route = (declared: Route): PluginApiRouteDeclaration => ({ ...declared, capability: "api.routes.register" });
const ofQuery = { from: "query", key: "companyId" } as const;

const manifest: PaperclipPluginManifestV1 = {
  id: "memhost",
  apiVersion: 1,
  version: VERSION,
  displayName: "Memory",
  description:
    "Every agent of every company remembers: comments, documents and runs, attributed, paid for and inspectable.",
  author: "memhost",
  categories: ["automation", "ui"],
  capabilities: [
    "companies.read",
    "projects.read",
    "agents.read",
    "issues.read",
    "issue.comments.read",
    "issue.documents.read",
    "events.subscribe",
    "jobs.schedule",
    "api.routes.register",
    "access.members.read",
    "secrets.read-ref",
    "activity.log.write",
    "agent.tools.register",
    "skills.managed",
    "costs.read",
    "database.namespace.migrate",
    "database.namespace.read",
    "database.namespace.write",
    "instance.settings.register",
    "ui.page.register",
    "ui.sidebar.register",
    "ui.dashboardWidget.register",
    "ui.detailTab.register",
  ],
  entrypoints: { worker: "./dist/worker.js", ui: "./dist/ui" },
  instanceConfigSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      paperclipUrl: {
        type: "string",
        title: "Address of Paperclip",
        description: "As the server itself reaches it, such as http://127.0.0.1:3100. Needed for costs, tools and MCP.",
      },
      boardToken: {
        type: "object",
        format: "secret-ref",
        title: "Board API key",
        description: "Needed where Paperclip asks for one: `paperclipai token board create`.",
      },
      browserUrl: {
        type: "string",
        title: "Address of Paperclip in browsers",
        description: "Where the explorer's links lead, if browsers reach Paperclip at another address.",
      },
      memhostUrl: {
        type: "string",
        title: "Address of memhost",
        description: "A memhost that runs elsewhere. Without it the plugin starts its own.",
      },
      memhostToken: { type: "object", format: "secret-ref", title: "Operator token of that memhost" },
      agents: {
        type: "array",
        items: { type: "string" },
        title: "Pilot",
        description: "Ids of the agents that may use memory. Empty: all.",
      },
      adoptDirectory: {
        type: "string",
        title: "Memory of an earlier installation",
        description: "The name of its data directory, to use it instead of the present one, for all companies.",
      },
      deleteDirectories: {
        type: "array",
        items: { type: "string" },
        title: "Memory to delete",
        description: "The names of data directories of earlier installations.",
      },
      instructions: {
        type: "boolean",
        default: true,
        title: "Tell agents of memory",
        description: "Fills the instructions of the gateway's connection, where Paperclip has them.",
      },
      eraseGraceSeconds: {
        type: "integer",
        minimum: 0,
        default: 86400,
        title: "Grace period",
        description: "How long a deleted company's memory is kept, in seconds.",
      },
    },
  },
  database: {
    migrationsDir: "./migrations",
    coreReadTables: [
      "companies",
      "projects",
      "agents",
      "issues",
      "issue_documents",
      "issue_comments",
      "heartbeat_runs",
      "cost_events",
      "budget_incidents",
    ],
  },
  jobs: [{ jobKey: "reconcile", displayName: "Compare memory with Paperclip", schedule: "*/10 * * * *" }],
  tools: TOOLS,
  apiRoutes: [
    route({ routeKey: "status", method: "GET", path: "/status", auth: "board-or-agent", companyResolution: ofQuery }),
    route({ routeKey: "recall", method: "GET", path: "/recall", auth: "agent" }),
    route({ routeKey: "search", method: "GET", path: "/search", auth: "board-or-agent", companyResolution: ofQuery }),
    route({
      routeKey: "issue",
      method: "GET",
      path: "/issues/:issueId/recall",
      auth: "board-or-agent",
      companyResolution: { from: "issue", param: "issueId" },
    }),
  ],
  skills: [
    {
      skillKey: "memory",
      displayName: "Memory",
      slug: "memory",
      description: "How to use what the company remembers",
      markdown: SKILL,
    },
  ],
  ui: {
    slots: [
      { type: "page", id: "memory", displayName: "Memory", exportName: "MemoryPage", routePath: "memory" },
      { type: "sidebar", id: "memory-link", displayName: "Memory", exportName: "MemoryLink" },
      { type: "dashboardWidget", id: "memory-widget", displayName: "Memory", exportName: "MemoryWidget" },
      {
        type: "taskDetailView",
        id: "memory-issue",
        displayName: "Memory",
        exportName: "MemoryOfIssue",
        entityTypes: ["issue"],
      },
      { type: "settingsPage", id: "memory-settings", displayName: "Memory", exportName: "MemorySettings" },
    ],
  },
};

export default manifest;
