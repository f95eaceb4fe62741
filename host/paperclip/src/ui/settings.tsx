// The settings: Enable, the addresses and keys, and directories of earlier installations.
import { usePluginData, usePluginToast, type PluginSettingsPageProps } from "@paperclipai/plugin-sdk/ui";
import { useEffect, useState } from "react";
import { problemsOf } from "../config";
import { Button, Card, Field, Quiet, said, Trouble, useAsked } from "./components";
import type { SettingsAnswer, Steps } from "./shapes";

/** A call of Paperclip with the session of this browser. */
async function paperclip<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`/api${path}`, {
    method,
    credentials: "same-origin",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok)
    throw new Error((JSON.parse(text || "{}") as { error?: string }).error ?? `Paperclip answered ${answer.status}`);
  return (text === "" ? null : JSON.parse(text)) as T;
}

/** Changes the saved settings of a company. Paperclip lets only its administrators do that. */
async function change(companyId: string, by: (row: Record<string, unknown>) => void): Promise<void> {
  const saved = await paperclip<{ configJson?: Record<string, unknown> } | null>(
    "GET",
    `/plugins/memhost/config?companyId=${companyId}`,
  );
  const row: Record<string, unknown> = { ...saved?.configJson };
  by(row);
  await paperclip("POST", "/plugins/memhost/config", { companyId, configJson: row });
}

export function MemorySettings({ context }: PluginSettingsPageProps) {
  const companyId = context.companyId;
  const { data, error, refresh } = usePluginData<SettingsAnswer>("settings", { companyId });
  if (companyId === null) return <Quiet>Choose a company: settings of memory belong to one.</Quiet>;
  if (error !== null) return <Trouble>{error.message}</Trouble>;
  if (data === null) return <Quiet>Reading settings…</Quiet>;
  return (
    <div className="space-y-4" style={{ maxWidth: 720 }}>
      <Card title="State">
        <p>{data.health.message}</p>
        <Quiet>{data.elsewhere === null ? `Data: ${data.directory}` : `Data: at ${data.elsewhere}`}</Quiet>
      </Card>
      <Enable companyId={companyId} settings={data} onChanged={refresh} />
      <Form companyId={companyId} settings={data} onChanged={refresh} />
      <Leftovers companyId={companyId} settings={data} onChanged={refresh} />
    </div>
  );
}

interface Part {
  companyId: string;
  settings: SettingsAnswer;
  onChanged: () => void;
}

function Enable({ companyId, settings, onChanged }: Part) {
  const on = useAsked<Steps>("enable", { companyId });
  const off = useAsked<Steps>("disable", { companyId });
  const [trouble, setTrouble] = useState<string | null>(null);
  const [last, setLast] = useState<"on" | "off">("on");
  const { data, error: failed } = last === "on" ? on : off;
  const steps = data?.steps ?? [];
  const isOn = settings.enabled !== null;
  const enable = async (): Promise<void> => {
    setTrouble(null);
    setLast("on");
    try {
      // The worker asks Paperclip where the settings say that it is, and nowhere else.
      if (settings.settings.paperclipUrl === null)
        await change(companyId, (row) => {
          row.paperclipUrl = window.location.origin;
        });
      await on.ask();
      onChanged();
    } catch (error) {
      setTrouble(said(error));
    }
  };
  return (
    <Card title={isOn ? "Enabled for this company" : "Enable for this company"}>
      <p>
        Comments and runs are remembered already. Enable adds documents, the agents&apos; tools, the skill, Claude and
        Codex through the gateway, costs and activity. Undo takes the tools, the skill and the gateway&apos;s connection
        back; documents, costs and activity go on.
      </p>
      <div className="flex gap-2" style={{ margin: "12px 0" }}>
        <Button tone="main" disabled={on.loading || off.loading} onClick={() => void enable()}>
          {isOn ? "Repeat Enable" : "Enable"}
        </Button>
        {isOn ? (
          <Button
            disabled={on.loading || off.loading}
            onClick={() => {
              setTrouble(null);
              setLast("off");
              void off.ask().then(onChanged);
            }}
          >
            Undo
          </Button>
        ) : null}
      </div>
      {(trouble ?? failed) ? <Trouble>{trouble ?? failed}</Trouble> : null}
      <ul style={{ display: "grid", gap: 4 }}>
        {steps.map(({ step, done, says }) => (
          <li key={step} style={done ? {} : { color: "var(--destructive)" }}>
            {done ? "Done" : "Not done"} · {step}: {says}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Form({ companyId, settings: { settings, agents: hired, keyTrouble }, onChanged }: Part) {
  const toast = usePluginToast();
  const [url, setUrl] = useState(settings.paperclipUrl ?? "");
  const [key, setKey] = useState("");
  const [browser, setBrowser] = useState(settings.browserUrl ?? "");
  const [memhost, setMemhost] = useState(settings.memhostUrl ?? "");
  const [token, setToken] = useState("");
  const [agents, setAgents] = useState(settings.agents);
  const [grace, setGrace] = useState(String(settings.eraseGraceSeconds / 3600));
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => setUrl(settings.paperclipUrl ?? ""), [settings.paperclipUrl]);
  const save = async (): Promise<void> => {
    const problems = problemsOf({ paperclipUrl: url, browserUrl: browser, memhostUrl: memhost });
    if (!(Number(grace) >= 0)) problems.push("Grace period in hours: write a number, such as 24");
    setTrouble(problems.length > 0 ? problems.join("; ") : null);
    if (problems.length > 0) return;
    try {
      const secret = async (name: string, value: string): Promise<Record<string, unknown> | null> => {
        if (value.trim() === "") return null;
        const { id } = await paperclip<{ id: string }>("POST", `/companies/${companyId}/secrets`, {
          name: `memhost-${name}-${Date.now()}`,
          value: value.trim(),
        });
        return { type: "secret_ref", secretId: id, version: "latest" };
      };
      const [boardToken, memhostToken] = [await secret("board", key), await secret("operator", token)];
      await change(companyId, (row) => {
        const set = (name: string, value: string): void => {
          if (value.trim() === "") delete row[name];
          else row[name] = value.trim();
        };
        set("paperclipUrl", url);
        set("browserUrl", browser);
        set("memhostUrl", memhost);
        if (boardToken !== null) row.boardToken = boardToken;
        if (memhostToken !== null) row.memhostToken = memhostToken;
        row.agents = agents;
        if (grace.trim() === "") delete row.eraseGraceSeconds;
        else row.eraseGraceSeconds = Math.round(Number(grace) * 3600);
      });
      setKey("");
      setToken("");
      toast({ title: "Settings of memory were saved", tone: "success" });
      onChanged();
    } catch (error) {
      setTrouble(said(error));
    }
  };
  return (
    <Card title="Settings">
      <form
        style={{ display: "grid", gap: 12 }}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Field
          label="Address of Paperclip"
          help="As the server itself reaches it. Enable fills it in."
          value={url}
          onChange={setUrl}
          placeholder={window.location.origin}
        />
        <Field
          label="Board API key"
          help={
            settings.hasBoardToken
              ? "A key is saved. A new one replaces it."
              : "Only where Paperclip asks for one: paperclipai token board create. It is kept as a secret of this company."
          }
          type="password"
          value={key}
          onChange={setKey}
        />
        {keyTrouble === null ? null : <Trouble>{keyTrouble}</Trouble>}
        <Field
          label="Address of Paperclip in browsers"
          help="Where the explorer's links lead, if browsers reach Paperclip at another address. For all companies of this Paperclip."
          value={browser}
          onChange={setBrowser}
        />
        <Field
          label="Address of a memhost that runs elsewhere"
          help="Empty: the plugin starts its own. For all companies of this Paperclip."
          value={memhost}
          onChange={setMemhost}
        />
        <Field
          label="Operator token of that memhost"
          help={
            settings.hasMemhostToken
              ? "A token is saved. A new one replaces it."
              : "Only for a memhost that runs elsewhere. It is kept as a secret of this company."
          }
          type="password"
          value={token}
          onChange={setToken}
        />
        <fieldset style={{ display: "grid", gap: 4 }}>
          <legend className="font-medium">Pilot</legend>
          <Quiet>Only these agents use memory. None chosen: all.</Quiet>
          {hired.length === 0 ? <Quiet>This company has no agents yet.</Quiet> : null}
          {hired.map(({ id, name }) => (
            <label key={id} className="flex items-center gap-2">
              <input
                type="checkbox"
                checked={agents.includes(id)}
                onChange={({ target }) =>
                  setAgents((before) => (target.checked ? [...before, id] : before.filter((one) => one !== id)))
                }
              />
              {name}
            </label>
          ))}
        </fieldset>
        <Field
          label="Grace period in hours"
          help="How long memory is kept after its company is deleted. Empty: 24. 0: it is erased at once."
          value={grace}
          onChange={setGrace}
        />
        {trouble === null ? null : <Trouble>{trouble}</Trouble>}
        <div>
          <Button tone="main">Save</Button>
        </div>
      </form>
    </Card>
  );
}

function Leftovers({ companyId, settings, onChanged }: Part) {
  const toast = usePluginToast();
  const [asks, setAsks] = useState<string | null>(null);
  if (settings.leftovers.length === 0) return null;
  const isElsewhere = settings.elsewhere !== null;
  const run = (name: string, what: "adopt" | "delete"): void =>
    void change(companyId, (row) => {
      if (what === "adopt") row.adoptDirectory = name;
      else row.deleteDirectories = [...new Set([...settings.settings.deleteDirectories, name])];
    }).then(
      () => {
        setAsks(null);
        toast({
          title: what === "adopt" ? "memhost is being restarted with this directory" : "The directory is being deleted",
          tone: "success",
        });
        onChanged();
      },
      (error: unknown) => toast({ title: said(error), tone: "error" }),
    );
  return (
    <Card title="Memory of an earlier installation">
      <Quiet>
        This is for all companies of this Paperclip.
        {isElsewhere
          ? " A memhost that runs elsewhere keeps memory now. To use or delete one of these, remove its address from every company's settings first."
          : ""}
      </Quiet>
      <ul style={{ display: "grid", gap: 8 }}>
        {settings.leftovers.map(({ name, directory, lastSeen }) => (
          <li key={name} className="flex items-center gap-2 flex-wrap">
            <span style={{ flex: 1 }}>
              {directory} <Quiet>last used {new Date(lastSeen).toLocaleDateString()}</Quiet>
            </span>
            {isElsewhere ? null : <Button onClick={() => run(name, "adopt")}>Use it instead</Button>}
            {isElsewhere ? null : asks === name ? (
              <Button tone="danger" onClick={() => run(name, "delete")}>
                Delete it for good
              </Button>
            ) : (
              <Button tone="danger" onClick={() => setAsks(name)}>
                Delete
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}
