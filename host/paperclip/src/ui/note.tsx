// A note of a person: for everybody, for this person alone, or for one agent alone.
import { usePluginAction, usePluginToast } from "@paperclipai/plugin-sdk/ui";
import { useState } from "react";
import { Button, Card, INPUT, said } from "./components";

export function Note({
  companyId,
  agents,
  onChanged,
}: {
  companyId: string;
  agents: { id: string; name: string }[];
  onChanged: () => void;
}) {
  const note = usePluginAction("note");
  const toast = usePluginToast();
  const [text, setText] = useState("");
  const [who, setWho] = useState("company");
  const [isSaving, setIsSaving] = useState(false);
  const save = async (): Promise<void> => {
    if (isSaving) return;
    setIsSaving(true);
    try {
      await note({ companyId, text, who });
      const reader = agents.find(({ id }) => id === who);
      toast({
        title: reader === undefined ? "Noted" : `Noted for ${reader.name} alone: your own lists do not show it`,
        tone: "success",
      });
      setText("");
      onChanged();
    } catch (error) {
      toast({ title: said(error), tone: "error" });
    }
    setIsSaving(false);
  };
  return (
    <Card title="Remember something">
      <form
        style={{ display: "grid", gap: 8, gridTemplateColumns: "minmax(0, 1fr)" }}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <textarea
          className="rounded-md border border-input bg-transparent p-3 text-sm"
          style={{ width: "100%", minHeight: 60 }}
          value={text}
          aria-label="What to remember"
          onChange={(event) => setText(event.target.value)}
        />
        <div className="flex items-center gap-2">
          <select
            className={INPUT}
            style={{ minWidth: 0 }}
            value={who}
            aria-label="Who may read it"
            onChange={(event) => setWho(event.target.value)}
          >
            <option value="company">Everybody in the company</option>
            <option value="me">Only me</option>
            {agents.map(({ id, name }) => (
              <option key={id} value={id}>
                Only {name}
              </option>
            ))}
          </select>
          <Button tone="main" disabled={isSaving || text.trim() === ""}>
            Remember
          </Button>
        </div>
      </form>
    </Card>
  );
}
