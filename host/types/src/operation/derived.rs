//! What follows from an operation's record, and taking the text out of it.

use super::{LogLine, Operation, Outcome};
use crate::{About, AgentId, RecordHandle};

/// The client that the pages of the explorer call themselves. Only a person looks at them.
pub const EXPLORER: &str = "explorer";

/// Whether a client is a program that speaks MCP: what it writes, a model wrote.
pub fn is_mcp(client: Option<&str>) -> bool {
    client.is_some_and(|client| client == "mcp" || client.starts_with("mcp:"))
}

impl Operation {
    /// What it is about.
    pub fn about(&self) -> About<'_> {
        About::of(&self.scope, self.source.as_ref(), self.hook.as_ref())
    }

    /// The agent that it is for.
    pub fn agent(&self) -> Option<&AgentId> {
        self.about().agent()
    }

    /// The run that it counts for.
    pub fn run(&self) -> Option<&str> {
        self.about().run()
    }

    /// Whether an agent or a run reads or writes with it, and no person who looks: it names an
    /// agent or a run, an agent asked, or a program that speaks MCP did. What the explorer reads is
    /// never an agent's, also in an agent's scope.
    pub fn is_agents(&self) -> bool {
        let via = self.source.as_ref().and_then(|source| source.external_ref.as_deref());
        let about = self.about();
        via != Some(EXPLORER)
            && (is_mcp(via)
                || about.agent().is_some()
                || about.run().is_some()
                || self.principal.is_confined())
    }

    /// Whether the host put it off before anything was tried.
    pub fn is_put_off(&self) -> bool {
        self.outcome == Outcome::Refused
            && self.error.as_ref().is_some_and(|error| error.code.puts_off())
    }

    /// The records that it names: those that it wrote, returned or forgot, then those that it
    /// cites.
    pub fn named(&self) -> impl Iterator<Item = &RecordHandle> {
        self.records.iter().chain(&self.cited)
    }

    /// Whether it has text of a request or of a guest: [`Operation::remove_text`] removes it. The
    /// answer is the same afterwards.
    pub fn keeps_text(&self) -> bool {
        self.payload.is_some() || !self.log.is_empty()
    }

    /// Removes the text of the request and the lines of the guest. What stays says that there was
    /// some.
    pub fn remove_text(&mut self) {
        if let Some(payload) = &mut self.payload {
            payload.text.clear();
        }
        if !self.log.is_empty() {
            let text =
                "removed, because a record of this operation was forgotten or replaced".to_owned();
            self.log = vec![LogLine { level: "info".to_owned(), text }];
        }
    }
}
