// Recall: a block of text for the start of a run, or the answer to a question. Every answer is to its own query.
import { randomUUID } from "node:crypto";
import { cut, marked, QUERY_CHARACTERS } from "./capture/text";
import { takesPart, type Settings } from "./config";
import type { Ledger } from "./ledger";
import { must, saying, type Schemas } from "./memhost/client";
import type { Memory } from "./memory";
import type { Host } from "./paperclip/host";
import { withNames } from "./paperclip/runs";

export interface Question {
  companyId: string;
  agentId: string | null;
  /** The person who asks, where no agent does. */
  subjectId?: string | null;
  runId: string | null;
  issueId: string | null;
  projectId: string | null;
  query: string;
  /** How it was asked: `route`, `tool`, `page`. */
  way: string;
}

export interface Recall {
  /** Names this recall, to say whether it helped. */
  id: string;
  /** Empty if there is nothing. */
  text: string;
  /** Why there is nothing; null if there is something. */
  skipped: string | null;
  /** Nothing was looked for, because memory did not answer. */
  hasFailed: boolean;
  found: number;
  snippets: Schemas["Snippet"][];
}

type Answer = Omit<Recall, "id" | "hasFailed"> & { records: Schemas["RecordHandle"][] };

const TOKENS = 500;
/** A question of a tool or of the page fits; the text of a long issue is cut. */
const QUERY_BYTES = 4 * QUERY_CHARACTERS;

export class Recalls {
  private pruned = 0;

  constructor(
    private readonly host: Host,
    private readonly memory: Memory,
    private readonly ledger: Ledger,
    private readonly settings: (companyId: string) => Settings,
  ) {}

  /** The block for the start of a run. */
  async hydrate(question: Question): Promise<Recall> {
    return this.answered(question, async (id) => {
      await this.memory.prepare(question.companyId);
      const receipt = await must(
        this.memory.use.POST("/runtime/v1/companies/{company}/hooks", {
          params: { path: { company: question.companyId } },
          body: {
            hookKind: "pre_run_hydrate",
            hookId: `recall:${id}`,
            triggeredAt: new Date().toISOString(),
            actorAgentId: question.agentId,
            heartbeatRunId: question.runId,
            scope: scopeOf(question),
            query: cut(question.query, QUERY_BYTES),
            tokenBudget: TOKENS,
          },
        }),
      );
      const context = receipt.context;
      const records = receipt.deliveries.flatMap((delivery) => delivery.recall?.records ?? []);
      const reason = receipt.notTaken?.reason ?? context?.degraded?.[0] ?? "nothing is remembered about it";
      return {
        text: marked(await withNames(this.host, question.companyId, context?.text ?? "")),
        skipped: context?.text ? null : String(reason),
        found: context?.included ?? 0,
        snippets: [],
        records,
      };
    });
  }

  /** The memories that fit a question, best first. */
  async search(question: Question, topK: number): Promise<Recall> {
    return this.answered(question, async () => {
      const { snippets } = await this.memory.query(scopeOf(question), cut(question.query, QUERY_BYTES), topK);
      return {
        text: "",
        skipped: snippets.length === 0 ? "nothing is remembered about it" : null,
        found: snippets.length,
        snippets,
        records: snippets.map(({ handle }) => handle),
      };
    });
  }

  private async answered(question: Question, ask: (id: string) => Promise<Answer>): Promise<Recall> {
    const id = randomUUID();
    let answer: Answer;
    let hasFailed = false;
    const nothing = (skipped: string) => ({ text: "", skipped, found: 0, snippets: [], records: [] });
    if (!takesPart(this.settings(question.companyId), question.agentId))
      answer = nothing("this agent is not in the pilot");
    else if (question.query.trim() === "") answer = nothing("there is no issue and no query to ask about");
    else {
      try {
        answer = await ask(id);
      } catch (error) {
        hasFailed = true;
        answer = nothing(saying(error));
      }
    }
    const { records, ...rest } = { ...answer, hasFailed };
    await this.keep(id, question, rest, records).catch((error: unknown) =>
      this.host.logger.warn("a recall is not in the list of recalls", { error: saying(error) }),
    );
    if (rest.skipped !== null)
      this.host.logger.info("recall gave nothing", {
        companyId: question.companyId,
        runId: question.runId,
        reason: rest.skipped,
      });
    return { id, ...rest };
  }

  /** Which records were found, and not what they say: a copy would survive a forget. */
  private async keep(
    id: string,
    question: Question,
    answer: Omit<Recall, "id">,
    records: Schemas["RecordHandle"][],
  ): Promise<void> {
    if (this.ledger.store === "") return;
    await this.host.db.execute(
      `INSERT INTO ${this.ledger.namespace}.recalls (store, id, company_id, issue_id, agent_id, run_id, way, found, skipped, records)
       VALUES ($1, $2, $3::uuid, $4::uuid, $5::uuid, $6::uuid, $7, $8::int, $9, $10::jsonb)`,
      [
        this.ledger.store,
        id,
        question.companyId,
        question.issueId,
        question.agentId,
        question.runId,
        question.way,
        answer.found,
        answer.skipped,
        JSON.stringify(records.slice(0, 100)),
      ],
    );
  }

  /** Says whether what was recalled helped. */
  async mark(companyId: string, id: string, by: string, helpful: boolean): Promise<boolean> {
    const { rowCount } = await this.host.db.execute(
      `UPDATE ${this.ledger.namespace}.recalls SET marks = marks || $1::jsonb WHERE store = $2 AND company_id = $3::uuid AND id = $4`,
      [JSON.stringify({ [by]: helpful }), this.ledger.store, companyId, id],
    );
    return rowCount > 0;
  }

  /** Removes recalls that are older than three months. */
  async prune(): Promise<void> {
    if (Date.now() - this.pruned < 3_600_000) return;
    this.pruned = Date.now();
    await this.host.db.execute(`DELETE FROM ${this.ledger.namespace}.recalls WHERE at < now() - interval '90 days'`);
  }

  async of(companyId: string, issueId: string | null, limit = 50): Promise<Record<string, unknown>[]> {
    return this.host.db.query(
      `SELECT id, issue_id, agent_id, run_id, way, found, skipped, records, marks, at FROM ${this.ledger.namespace}.recalls
       WHERE store = $1 AND company_id = $2::uuid AND ($3::uuid IS NULL OR issue_id = $3::uuid) ORDER BY at DESC LIMIT ${limit}`,
      [this.ledger.store, companyId, issueId],
    );
  }
}

export function scopeOf(question: Omit<Question, "query" | "way">): Schemas["Scope"] {
  return {
    companyId: question.companyId,
    agentId: question.agentId,
    subjectId: question.subjectId ?? null,
    projectId: question.projectId,
    issueId: question.issueId,
    runId: question.runId,
  };
}
