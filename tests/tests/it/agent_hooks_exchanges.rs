//! Which question is captured with which answer: only the two that were said one to the other, and
//! of them only what people and agents said.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use serde_json::{Value, json};

use super::agent_hooks::{Machine, files, run};

/// A session of Claude Code on a machine whose host is not there: what would be sent waits.
struct Session {
    machine: Machine,
    lines: Vec<Value>,
}

fn says(role: &str, text: &str) -> Value {
    json!({"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}})
}

impl Session {
    fn new() -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        Self { machine: Machine::new(format!("http://{nowhere}")), lines: Vec::new() }
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.line(says("user", text))
    }

    fn agent(&mut self, text: &str) -> &mut Self {
        self.line(says("assistant", text))
    }

    fn line(&mut self, line: Value) -> &mut Self {
        self.lines.push(line);
        self
    }

    /// Runs a hook with these fields. The transcript is as it is now.
    fn hook(&self, event: &str, fields: &Value) -> &Self {
        let transcript = self.machine.path("session.jsonl");
        let lines: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        std::fs::write(&transcript, lines.join("\n")).unwrap();
        let mut payload = json!({
            "session_id": "s", "transcript_path": transcript, "hook_event_name": event,
            "cwd": self.machine.path("widgets"),
        });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let called = self.machine.call(&["agent-hooks", "claude"], &payload.to_string());
        assert_eq!((called.code, called.errors.as_str()), (Some(0), ""), "{called:?}");
        self
    }

    fn asks(&self, prompt: &str) -> &Self {
        self.hook("UserPromptSubmit", &json!({"prompt": prompt}))
    }

    fn ends(&self, answer: &str) -> &Self {
        self.hook("Stop", &json!({"last_assistant_message": answer}))
    }

    /// What was captured, oldest first.
    fn captured(&self) -> Vec<String> {
        let bodies = spooled(&self.machine).into_iter();
        bodies.filter_map(|body| Some(body["payload"]["text"].as_str()?.to_owned())).collect()
    }
}

/// The bodies of all requests that wait.
fn spooled(machine: &Machine) -> Vec<Value> {
    let spools = files(&machine.path("state/spool"));
    let all = spools.iter().flat_map(|spool| files(spool));
    let requests = all.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    requests
        .map(|file| {
            let stored: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            stored["body"].clone()
        })
        .collect()
}

fn pair(prompt: &str, answer: &str) -> String {
    format!("User: {prompt}\n\nAssistant: {answer}\n")
}

#[test]
fn a_late_hook_does_not_take_the_next_question() {
    let mut session = Session::new();
    session.user("Who owns staging?").agent("Ada.").user("And billing?");
    session.ends("Ada.");
    assert_eq!(session.captured(), [pair("Who owns staging?", "Ada.")]);
    // Without a transcript and a turn, it can be either; with the turn it is known.
    let session = Session::new();
    session.asks("Who owns staging?").asks("And billing?").ends("Ada.");
    assert_eq!(session.captured(), ["Assistant: Ada.\n"]);
    assert!(session.machine.log().contains("without its question"), "{}", session.machine.log());
    let session = Session::new();
    for (turn, prompt) in [("1", "Who owns staging?"), ("2", "And billing?")] {
        session.hook("UserPromptSubmit", &json!({"prompt": prompt, "prompt_id": turn}));
    }
    session.hook("Stop", &json!({"last_assistant_message": "Ada.", "prompt_id": "1"}));
    assert_eq!(session.captured(), [pair("Who owns staging?", "Ada.")]);
    assert!(!session.machine.log().contains("without its question"), "{}", session.machine.log());
}

#[test]
fn a_long_turn_keeps_its_question() {
    let mut session = Session::new();
    let (ask, answer) = ("Split the crate in two", "Split.");
    session.user(ask);
    session.asks(ask);
    for _ in 0..10 {
        let result = json!({"type": "tool_result", "content": "y".repeat(56 << 10)});
        session.line(json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    session.agent(answer).ends(answer);
    // A second installation runs the same hook, and the end of the session tells the same again.
    session.ends(answer).hook("SessionEnd", &json!({"reason": "other"}));
    let ids: Vec<Value> = spooled(&session.machine)
        .into_iter()
        .filter(|body| body["payload"].is_object())
        .map(|body| body["hookId"].clone())
        .collect();
    assert_eq!(session.captured(), [pair(ask, answer), pair(ask, answer), pair(ask, answer)]);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn a_command_is_the_question_of_its_answer() {
    let command = "<command-message>rev</command-message>\n<command-name>/rev</command-name>\n\
                   <command-args>main.rs</command-args>";
    let mut session = Session::new();
    session.user("Who owns staging?").agent("Ada.").user(command);
    session.line(json!({"type": "user", "isMeta": true, "message": {"content": "Review it."}}));
    session.agent("Two problems.").ends("Two problems.");
    assert_eq!(session.captured(), [pair("/rev main.rs", "Two problems.")]);
}

#[test]
fn what_the_program_wrote_is_nobodys_question() {
    let note = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nRead /tmp/b1";
    let mut session = Session::new();
    session.user("Run it").agent("Started.").user(note).agent("It is done.");
    session.ends("It is done.");
    assert_eq!(session.captured(), ["Assistant: It is done.\n"]);
    assert_eq!(session.machine.log().matches("without its question").count(), 0);
    // The same text as a prompt, where the transcript has no answer yet.
    let session = Session::new();
    session.asks("Run it").ends("Started.").asks(note).ends("It is done.");
    assert_eq!(session.captured(), [pair("Run it", "Started."), "Assistant: It is done.\n".into()]);
    let mut session = Session::new();
    session.user("<ide_opened_file>/home/x/plan.md</ide_opened_file>\nExplain this");
    session.agent("It is a plan.").ends("It is a plan.");
    assert_eq!(session.captured(), [pair("Explain this", "It is a plan.")]);
}

#[test]
fn what_an_interrupted_turn_said_is_kept() {
    let mut session = Session::new();
    session.user("Rename foo").agent("I renamed two of five.");
    session.user("[Request interrupted by user]").asks("Stop, rename bar");
    assert_eq!(session.captured(), [pair("Rename foo", "I renamed two of five.")]);
    session.user("Stop, rename bar").agent("Renamed.").ends("Renamed.");
    // The transcript may have been late, so the next hook tells it again, under one id.
    let ids: Vec<Value> =
        spooled(&session.machine).into_iter().map(|body| body["hookId"].clone()).collect();
    assert_eq!(ids[0], ids[1]);
    assert_eq!(session.captured()[2..], [pair("Stop, rename bar", "Renamed.")]);
}

#[test]
fn half_a_character_loses_no_event() {
    let mut session = Session::new();
    session.user("Is it done?").agent("Yes 😀");
    let payload = session.machine.path("session.jsonl");
    session.hook("Notification", &json!({}));
    let cut = std::fs::read_to_string(&payload).unwrap().replace('😀', "\\ud83d");
    std::fs::write(&payload, cut).unwrap();
    let stop = json!({
        "session_id": "s", "transcript_path": payload, "hook_event_name": "Stop",
        "last_assistant_message": "Yes 😀",
    });
    let stop = stop.to_string().replace('😀', "\\ud83d");
    assert_eq!(session.machine.call(&["agent-hooks", "claude"], &stop).code, Some(0));
    assert_eq!(session.captured(), [pair("Is it done?", "Yes \u{fffd}")]);
}

#[test]
fn no_prompt_is_noted_where_nothing_is_captured() {
    let session = Session::new();
    let prompt = json!({
        "session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "a secret",
    });
    let quiet = ["agent-hooks", "claude", "--no-capture"];
    assert_eq!(session.machine.call(&quiet, &prompt.to_string()).code, Some(0));
    assert!(files(&session.machine.path("state/prompts")).is_empty());
}

#[test]
fn a_project_is_its_repository_wherever_it_is_checked_out() {
    let machine = Session::new().machine;
    let git = |line: &str| {
        let ran = Command::new("git")
            .args(["-c", "user.email=a@b", "-c", "user.name=x"])
            .args(line.split(' '))
            .current_dir(machine.path("widgets"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
    };
    for line in [
        "init -q app",
        "-C app commit -q --allow-empty -m i",
        "-C app worktree add -q ../tree",
        "init -q other/app",
        "init -q a",
        "-C a remote add origin git@github.com:Acme/Lib.git",
        "init -q b",
        "-C b remote add origin https://github.com/acme/lib",
    ] {
        git(line);
    }
    let id = |place: &str| {
        let payload = json!({
            "session_id": place, "hook_event_name": "SessionStart", "source": "startup",
            "cwd": machine.path("widgets").join(place),
        });
        let mut command = machine.command(&["agent-hooks", "claude"]);
        command.env_remove("MEMHOST_PROJECT");
        assert_eq!(run(command, &payload.to_string()).code, Some(0));
        let all = spooled(&machine);
        let events = all.iter().map(|body| &body["events"][0]);
        let mut own = events.filter(|event| event["sessionId"] == place.replace('/', "_"));
        own.next().unwrap()["projectId"].as_str().unwrap().to_owned()
    };
    assert_eq!(id("app"), id("tree"));
    assert_ne!(id("app"), id("other/app"));
    assert_eq!((id("a"), id("b")), ("github.com:acme:lib".into(), "github.com:acme:lib".into()));
}

/// The answer is in the transcript a moment after the hook. Until then an equal one of an earlier
/// turn is the last.
#[test]
fn an_equal_answer_of_an_earlier_turn_takes_no_question() {
    let mut session = Session::new();
    for (turn, prompt) in [("1", "We decided ONE."), ("2", "We decided TWO.")] {
        if turn == "1" {
            let mut line = says("user", prompt);
            line["promptId"] = json!(turn);
            session.line(line).agent("Done.");
        }
        session.hook("UserPromptSubmit", &json!({"prompt": prompt, "prompt_id": turn}));
        session.hook("Stop", &json!({"last_assistant_message": "Done.", "prompt_id": turn}));
    }
    let said = [pair("We decided ONE.", "Done."), pair("We decided TWO.", "Done.")];
    assert_eq!(session.captured(), said);
}

/// A line of a person in a turn of a known id, as Claude Code writes it.
fn typed(turn: &str, text: &str) -> Value {
    let mut line = says("user", text);
    line["promptId"] = json!(turn);
    line["origin"] = json!({"kind": "human"});
    line
}

/// What Claude Code writes of the stream of an interrupted turn.
fn part(text: &str) -> Value {
    let mut line = says("assistant", text);
    line["message"]["model"] = json!("<synthetic>");
    line["isApiErrorMessage"] = json!(false);
    line
}

#[test]
fn an_interruption_that_the_transcript_tells_late_is_kept() {
    let mut session = Session::new();
    session.line(typed("1", "Rename foo"));
    session.hook("UserPromptSubmit", &json!({"prompt": "Rename foo", "prompt_id": "1"}));
    // The next prompt comes at once.
    session.hook("UserPromptSubmit", &json!({"prompt": "Stop, rename bar", "prompt_id": "2"}));
    assert!(session.captured().is_empty());
    session.line(part("I renamed two of five.")).user("[Request interrupted by user]");
    session.line(typed("2", "Stop, rename bar")).agent("Renamed.");
    session.hook("Stop", &json!({"last_assistant_message": "Renamed.", "prompt_id": "2"}));
    let said = [pair("Rename foo", "I renamed two of five."), pair("Stop, rename bar", "Renamed.")];
    assert_eq!(session.captured(), said);
    // What it writes in the same way without an interruption, nobody said.
    let mut session = Session::new();
    session.line(typed("1", "Rename foo")).line(part("No response requested."));
    session.hook("SessionEnd", &json!({"reason": "other"}));
    assert!(session.captured().is_empty());
}

#[test]
fn a_decision_that_is_repeated_is_another_one() {
    let mut session = Session::new();
    for turn in ["1", "2"] {
        session.line(typed(turn, "Approve it")).agent("Done.");
        session.hook("UserPromptSubmit", &json!({"prompt": "Approve it", "prompt_id": turn}));
        session.hook("Stop", &json!({"last_assistant_message": "Done.", "prompt_id": turn}));
    }
    session.hook("SessionEnd", &json!({"reason": "other", "prompt_id": "of the end"}));
    let hooks = spooled(&session.machine).into_iter().filter(|body| body["payload"].is_object());
    let ids: Vec<Value> = hooks.map(|body| body["hookId"].clone()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[0] != ids[1] && ids[1] == ids[2], "{ids:?}");
}

#[test]
fn what_was_said_before_an_error_of_the_service_is_kept() {
    let mut session = Session::new();
    session.user("Who owns staging?").agent("Ada.");
    for turn in ["1", "2"] {
        session.line(typed(turn, "We chose Postgres"));
        session
            .hook("UserPromptSubmit", &json!({"prompt": "We chose Postgres", "prompt_id": turn}));
        session.hook("StopFailure", &json!({"error": "rate_limit", "prompt_id": turn}));
    }
    let said = "User: We chose Postgres\n";
    assert_eq!(session.captured(), [said, said]);
    let ids: Vec<Value> =
        spooled(&session.machine).into_iter().map(|body| body["hookId"].clone()).collect();
    assert_eq!(ids[0], ids[1], "who tries again says nothing new");
}

#[test]
fn a_person_can_begin_with_the_mark_of_a_program() {
    let text = "<channel> tags: how are they escaped?";
    let mut session = Session::new();
    session.line(typed("1", text));
    session.hook("UserPromptSubmit", &json!({"prompt": text, "prompt_id": "1"}));
    session.hook("Stop", &json!({"last_assistant_message": "With &lt;.", "prompt_id": "1"}));
    assert_eq!(session.captured(), [pair(text, "With &lt;.")]);
}

#[test]
fn an_answer_to_a_picture_takes_no_earlier_question() {
    let mut session = Session::new();
    session.user("Who owns staging?").agent("Ada.");
    let picture = json!([{"type": "image", "source": {}}]);
    session.line(json!({"type": "user", "message": {"role": "user", "content": picture}}));
    session.agent("It shows a plan.");
    session.hook("UserPromptSubmit", &json!({"prompt": ""}));
    session.ends("It shows a plan.").hook("SessionEnd", &json!({"reason": "other"}));
    assert_eq!(
        session.captured(),
        ["Assistant: It shows a plan.\n", "Assistant: It shows a plan.\n"]
    );
}

#[test]
fn the_output_of_a_shell_is_nobodys_question_at_the_end_of_a_session() {
    let mut session = Session::new();
    session.line(typed("1", "Who owns staging?")).agent("Ada.");
    session.hook("UserPromptSubmit", &json!({"prompt": "Who owns staging?", "prompt_id": "1"}));
    session.hook("Stop", &json!({"last_assistant_message": "Ada.", "prompt_id": "1"}));
    session.user("<bash-stdout>hi</bash-stdout>").agent("It greets.");
    session.hook("Stop", &json!({"last_assistant_message": "It greets.", "prompt_id": "1"}));
    session.hook("SessionEnd", &json!({"reason": "other", "prompt_id": "2"}));
    let greeting = "Assistant: It greets.\n".to_owned();
    let said = [pair("Who owns staging?", "Ada."), greeting.clone(), greeting];
    assert_eq!(session.captured(), said);
    let hooks = spooled(&session.machine).into_iter().filter(|body| body["payload"].is_object());
    let ids: Vec<Value> = hooks.map(|body| body["hookId"].clone()).collect();
    assert_eq!(ids[1], ids[2]);
}

/// A tool runs the hooks of the user's settings in every project.
#[test]
fn nothing_is_captured_in_a_project_that_says_so() {
    for file in ["settings.json", "settings.local.json"] {
        let mut session = Session::new();
        let below = session.machine.path("widgets").join("below");
        std::fs::create_dir_all(&below).unwrap();
        let installed = ["agent-hooks", "claude", "install", "--no-capture", "--company", "acme"];
        let scope = if file == "settings.json" { "project" } else { "local" };
        let install = [&installed[..], &["--scope", scope]].concat();
        let mut command = session.machine.command(&install);
        command.current_dir(session.machine.path("widgets"));
        let printed = run(command, "");
        assert_eq!(printed.code, Some(0));
        let undo = format!("to undo: memhost agent-hooks claude uninstall --scope {scope}\n");
        assert!(printed.out.contains(&undo), "{}", printed.out);
        session.user("We take Postgres").agent("Noted.");
        for place in ["widgets", "widgets/below"] {
            let said = json!({"prompt": "We take Postgres", "cwd": session.machine.path(place)});
            session.hook("UserPromptSubmit", &said);
            let said =
                json!({"last_assistant_message": "Noted.", "cwd": session.machine.path(place)});
            session.hook("Stop", &said);
        }
        assert!(session.captured().is_empty(), "{file}");
        assert!(files(&session.machine.path("state/prompts")).is_empty(), "{file}");
        session.hook("Stop", &json!({"last_assistant_message": "Noted.", "cwd": "/elsewhere"}));
        assert_eq!(session.captured().len(), 1, "other projects are as before");
    }
}

#[test]
fn what_was_queued_together_is_one_question() {
    let mut session = Session::new();
    for (turn, words) in [("of its hook", "We take Kafka"), ("1", "and then commit")] {
        session.line(typed("1", words));
        session.hook("UserPromptSubmit", &json!({"prompt": words, "prompt_id": turn}));
    }
    session.agent("Done.");
    session.hook("Stop", &json!({"last_assistant_message": "Done.", "prompt_id": "1"}));
    assert_eq!(session.captured(), [pair("We take Kafka\nand then commit", "Done.")]);
}

#[test]
fn blanks_around_an_answer_make_no_second_one() {
    let mut session = Session::new();
    session.line(typed("1", "Who owns staging?")).agent("Ada.");
    session.hook("UserPromptSubmit", &json!({"prompt": "Who owns staging?", "prompt_id": "1"}));
    session.hook("Stop", &json!({"last_assistant_message": "\nAda.\n", "prompt_id": "1"}));
    session.hook("SessionEnd", &json!({"reason": "other"}));
    let said = pair("Who owns staging?", "Ada.");
    assert_eq!(session.captured(), [said.clone(), said]);
    let hooks = spooled(&session.machine).into_iter().filter(|body| body["payload"].is_object());
    let ids: Vec<Value> = hooks.map(|body| body["hookId"].clone()).collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_turn_that_was_killed_is_captured_when_the_session_goes_on() {
    let mut session = Session::new();
    session.line(typed("1", "Rename foo")).agent("I look first.");
    session.hook("UserPromptSubmit", &json!({"prompt": "Rename foo", "prompt_id": "1"}));
    session.hook("SessionStart", &json!({"source": "resume"}));
    assert_eq!(session.captured(), [pair("Rename foo", "I look first.")]);
    // What a hook has told is not told again.
    session.hook("Stop", &json!({"last_assistant_message": "I look first.", "prompt_id": "1"}));
    session.hook("SessionStart", &json!({"source": "resume"}));
    assert_eq!(session.captured().len(), 2);
}

#[test]
fn a_prompt_before_an_error_of_codex_is_captured() {
    let machine = Session::new().machine;
    let transcript = machine.path("rollout.jsonl");
    let item = |payload: Value| json!({"type": "response_item", "payload": payload}).to_string();
    let asked = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "We take Kafka"}]});
    let ended = json!({"type": "event_msg", "payload": {"type": "task_complete",
        "last_agent_message": null, "error": {"message": "no"}}});
    std::fs::write(&transcript, format!("{}\n{ended}\n", item(asked))).unwrap();
    let payload = json!({"session_id": "s", "transcript_path": transcript, "reason": "exit",
        "hook_event_name": "SessionEnd", "cwd": machine.path("widgets")});
    assert_eq!(machine.call(&["agent-hooks", "codex"], &payload.to_string()).code, Some(0));
    let texts: Vec<Value> =
        spooled(&machine).into_iter().map(|body| body["payload"]["text"].clone()).collect();
    assert!(texts.contains(&json!("User: We take Kafka\n")), "{texts:?}");
}

#[test]
fn an_answer_after_an_error_in_the_same_turn_has_its_question() {
    let mut session = Session::new();
    session.line(typed("1", "We chose Postgres"));
    session.hook("UserPromptSubmit", &json!({"prompt": "We chose Postgres", "prompt_id": "1"}));
    session.hook("StopFailure", &json!({"error": "rate_limit", "prompt_id": "1"}));
    session.agent("Noted.");
    session.hook("Stop", &json!({"last_assistant_message": "Noted.", "prompt_id": "1"}));
    let said = ["User: We chose Postgres\n".to_owned(), pair("We chose Postgres", "Noted.")];
    assert_eq!(session.captured(), said);
}
