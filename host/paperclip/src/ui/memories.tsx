// A list of memories that people correct, forget and mark.
import { useHostNavigation, usePluginAction, usePluginToast } from "@paperclipai/plugin-sdk/ui";
import { useRef, useState, type RefObject } from "react";
import { clip } from "../capture/text";
import { Button, Quiet, said } from "./components";
import type { Shown } from "./shapes";

const KINDS: Record<string, string> = {
  issue_comment: "comment",
  issue_document: "document",
  run: "run",
  manual_note: "note",
};

export function Memories({
  companyId,
  memories,
  onChanged,
}: {
  companyId: string;
  memories: Shown[];
  onChanged: () => void;
}) {
  // The keyboard goes on in the list when the button that it was on is gone.
  const list = useRef<HTMLUListElement>(null);
  return (
    <ul
      ref={list}
      tabIndex={-1}
      aria-label="Memories"
      style={{ display: "grid", gap: 8, gridTemplateColumns: "minmax(0, 1fr)" }}
    >
      {memories.map((memory) => (
        <Memory key={memory.id} companyId={companyId} memory={memory} list={list} onChanged={onChanged} />
      ))}
    </ul>
  );
}

interface Forgotten {
  outcomes: { effect: keyof typeof EFFECTS }[];
}

/** How far a memory is forgotten, which its provider says. */
const EFFECTS = {
  hard: "Forgotten",
  soft: "Hidden; its provider still stores it",
  history_kept: "Forgotten here; its provider keeps it in a history",
  not_found: "It was forgotten before",
};

/** What is folded at first. Paperclip's styles have no class for so many lines. */
const LINES = 6;
const FOLDED = 400;

/** A text as it was written, folded where it is long, whatever words it has. */
function Text({ children }: { children: string }) {
  const [whole, setWhole] = useState(false);
  const isLong = children.length > FOLDED || children.split("\n").length > LINES;
  // A text of megabytes is not laid out to be hidden.
  const shown = whole ? children : clip(children, 4 * FOLDED);
  return (
    <>
      <p
        className="whitespace-pre-wrap"
        style={{
          overflowWrap: "anywhere",
          ...(isLong && !whole
            ? { display: "-webkit-box", WebkitBoxOrient: "vertical", WebkitLineClamp: LINES, overflow: "hidden" }
            : {}),
        }}
      >
        {shown}
      </p>
      {isLong ? (
        <button
          type="button"
          className="text-xs underline"
          aria-expanded={whole}
          onClick={() => setWhole(!whole)}
          style={{ marginTop: 4 }}
        >
          {whole ? "Show less" : "Show all"}
        </button>
      ) : null}
    </>
  );
}

function Memory({
  companyId,
  memory,
  list,
  onChanged,
}: {
  companyId: string;
  memory: Shown;
  list: RefObject<HTMLUListElement | null>;
  onChanged: () => void;
}) {
  const correct = usePluginAction("correct");
  const forget = usePluginAction("forget");
  const toast = usePluginToast();
  const navigation = useHostNavigation();
  const [text, setText] = useState<string | null>(null);
  const [asks, setAsks] = useState(false);
  const act = async (doing: () => Promise<string>): Promise<void> => {
    try {
      toast({ title: await doing(), tone: "success" });
      setText(null);
      setAsks(false);
      onChanged();
    } catch (error) {
      toast({ title: said(error), tone: "error" });
    }
  };
  return (
    <li
      className="rounded-md border border-border p-3 text-sm"
      style={{ minWidth: 0, overflow: "hidden" }}
      data-memory={memory.id}
    >
      {text === null ? (
        <Text>{memory.text}</Text>
      ) : (
        <textarea
          className="rounded-md border border-input bg-transparent p-3 text-sm"
          style={{ width: "100%", minHeight: 90 }}
          value={text}
          aria-label="Corrected text"
          autoFocus
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <div className="flex items-center gap-2 flex-wrap" style={{ marginTop: 8 }}>
        <Quiet>
          {[
            KINDS[memory.kind ?? ""] ?? memory.kind,
            memory.agent,
            memory.createdAt === null ? null : new Date(memory.createdAt).toLocaleDateString(),
          ]
            .filter(Boolean)
            .join(" · ")}
        </Quiet>
        {memory.issueId !== null && memory.issue !== null ? (
          <a className="text-xs underline" {...navigation.linkProps(`/issues/${memory.issue.key}`)}>
            {memory.issue.name}
          </a>
        ) : null}
        <span className="flex gap-2" style={{ marginLeft: "auto" }}>
          {text !== null ? (
            <>
              <Button
                tone="main"
                disabled={text.trim() === ""}
                onClick={() =>
                  void act(async () => {
                    await correct({ companyId, id: memory.id, text });
                    return "Corrected";
                  })
                }
              >
                Save
              </Button>
              <Button onClick={() => setText(null)}>Cancel</Button>
            </>
          ) : asks ? (
            <>
              <Button
                tone="danger"
                onClick={() =>
                  void act(async () => {
                    const { outcomes } = (await forget({ companyId, id: memory.id })) as Forgotten;
                    list.current?.focus();
                    return EFFECTS[outcomes[0]?.effect ?? "hard"];
                  })
                }
              >
                Forget it
              </Button>
              <Button onClick={() => setAsks(false)}>Keep it</Button>
            </>
          ) : (
            <>
              <Button onClick={() => setText(memory.text)}>Correct</Button>
              <Button tone="danger" onClick={() => setAsks(true)}>
                Forget
              </Button>
            </>
          )}
        </span>
      </div>
    </li>
  );
}
