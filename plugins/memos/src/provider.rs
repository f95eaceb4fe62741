//! What MemOS is to the SDK: a service that keeps what it makes of captures, its tasks as jobs, and
//! a user who can be wiped.

use memhost_sdk::Health;
use memhost_sdk::http::{Client, Error, filled, segment};
use memhost_sdk::remote::{
    Capture, Elsewhere, Learnt, Progress, Record, Search, Service, Tag, Wipes, Work, owner,
    partition_choices,
};
use memhost_sdk::types::{self, *};
use serde_json::{Value, json};

use crate::answers::{Memory, data};
use crate::api::{MEMBER, Memos, OURS, USER, conversation};
use crate::config::Config;

fn message(turn: &Turn) -> Value {
    let role = if turn.role == "assistant" { "assistant" } else { "user" };
    filled(json!({"role": role, "content": turn.text, "chat_time": turn.at}))
}

impl Service for Memos {
    type Config = Config;

    /// The most hits, of memories and of preferences each.
    const MOST_HITS: usize = 25;
    const KEEPS_TEXTS: bool = false;
    const TAKES_INSTRUCTIONS: bool = true;

    fn describe() -> Description {
        Description::new(
            "memos",
            env!("CARGO_PKG_VERSION"),
            "Lets MemOS's cloud make and find memories",
        )
        .configured_by::<Config>()
        .extracts()
        .concurrent(8)
        // A record that is forgotten takes up to seven requests, and a call has 64.
        .at_most(None, 8)
        .without([Exception::ReadAfterWrite, Exception::ExactlyOnceLists])
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(
            Permission::Storage(64 << 20),
            "Notes what was captured, of which scope, and which task works on it",
        )
        .require(Permission::Secret("MEMOS_API_KEY".to_owned()), "MemOS's key")
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.secret("authorization", "Token", "MEMOS_API_KEY");
        Ok(Self { config, http, company: String::new(), user: String::new() })
    }

    fn serve(&mut self, company: &str) {
        company.clone_into(&mut self.company);
        self.user = owner(self.config.user_id.as_deref(), company);
    }

    /// It takes only the text of a replacement.
    fn takes(&self, _: &str, tag: &Tag) -> Result<(), types::Error> {
        if tag.summary.is_none() && tag.metadata.is_none() && tag.expires_at.is_none() {
            return Ok(());
        }
        Err(types::Error::unsupported(
            "MemOS changes the text of a memory, not summary, metadata or expiry",
        ))
    }

    fn is_id(&self, id: &str) -> bool {
        (1..=200).contains(&id.len())
    }

    fn add(&self, _: &str, _: &str, _: &Tag) -> Result<String, Error> {
        Err(Error::unexpected("adding a memory", "MemOS keeps no text as it is"))
    }

    fn written(&self, _: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(Vec::new())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let path = format!("/get/memory/{}", segment(id));
        let Some(found) = data::<Memory>(&path, self.http.get(&path))? else { return Ok(None) };
        if found.id != id {
            return Err(Error::unexpected(&path, "it is another memory"));
        }
        // The key reads the memories of every user.
        let is_ours = match found.user_id.as_deref().or(found.told(USER)) {
            Some(user) => user == self.user,
            None => self.newest(|memory| memory.id == id).next().transpose()?.is_some(),
        };
        Some(found)
            .filter(|found| is_ours && found.is_there())
            .map(|found| self.record(found))
            .transpose()
    }

    fn replace(&self, old: &Record, text: &str, _: &Tag) -> Result<(), Error> {
        let (path, body) = ("/update/memory", json!({"memory_id": old.id, "content": text}));
        let gone = || Error::unexpected(path, "there is no such memory");
        match self.post::<Value>(path, &body).and_then(|done| done.ok_or_else(gone)) {
            // The tag stays what it was, so only the text tells.
            Err(error) if error.may_have_acted() => {
                self.find(&old.id)?.filter(|now| now.text == text).map(drop).ok_or(error)
            }
            done => done.map(drop),
        }
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.post::<Value>("/delete/memory", &json!({"memory_ids": [id]})).map(drop)
    }

    /// The material stays in its conversation, which no route deletes.
    fn left_of(&self, _: &Record) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::HistoryKept)
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let body = filled(
            json!({"query": search.query, "user_id": self.user, "memory_limit_number": search.most,
            "include_preference": true, "preference_limit_number": search.most,
            "include_tool_memory": false,
            "relativity": self.config.threshold}),
        );
        let either = |(name, values): (&str, [String; 2])| {
            json!({
                "or": values.map(|value| json!({name: value})),
            })
        };
        let members =
            search.members.iter().map(|(name, text)| json!({format!("{MEMBER}{name}"): text}));
        let narrow: Vec<_> =
            partition_choices(search.scope).into_iter().map(either).chain(members).collect();
        if !narrow.is_empty() {
            let mut filtered = body.clone();
            filtered["filter"] = json!({"and": narrow});
            let found = self.hits(&filtered)?;
            if !found.is_empty() {
                return self.records(found);
            }
        }
        // Also what somebody else wrote.
        self.records(self.hits(&body)?)
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let (found, more) = self.entries(page)?;
        Ok((self.records(found)?, more))
    }

    /// An instruction is feedback, which MemOS works on later: it finds and changes the memories by
    /// itself.
    fn instruct(&self, old: &Record, instruction: &str) -> Result<(), Error> {
        let conversation = old.key.as_deref().filter(|key| !key.is_empty());
        let feedback = format!("{OURS}feedback");
        let said = format!("{instruction}\n\nThis is about: {}", old.text);
        let body = json!({
            "user_id": self.user, "conversation_id": conversation.unwrap_or(&feedback),
            "feedback_content": said,
        });
        self.added("/add/feedback", &body).map(drop)
    }

    /// A capture is a conversation of its own.
    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let conversation = conversation(capture.key)?;
        let messages: Vec<_> = capture.turns.iter().map(message).collect();
        let mut info = capture.tag.members(MEMBER);
        info.insert(USER.to_owned(), self.user.as_str().into());
        let body = json!({
            "messages": messages, "user_id": self.user, "conversation_id": conversation,
            "info": info, "async_mode": true, "allow_public": false,
        });
        let task = self.added("/add/message", &body)?.task_id;
        Ok(Learnt {
            details: json!({"task": task, "tag": capture.tag}),
            ..Learnt::job(conversation)
        })
    }

    /// The task is not known: the answer that named it was lost.
    fn learnt(&self, capture: &Capture<'_>) -> Result<Option<Learnt>, Error> {
        let conversation = conversation(capture.key)?;
        let is_there = self.has(&conversation)?;
        Ok(is_there
            .then(|| Learnt { details: json!({"tag": capture.tag}), ..Learnt::job(conversation) }))
    }
}

impl Elsewhere for Memos {
    fn ask(&self, id: &str, work: &Work) -> Result<Progress, Error> {
        let status = work.details["task"].as_str().map_or(Ok(None), |task| self.status(task))?;
        Ok(match status.as_deref() {
            Some("completed") => Progress::done(self.made_of(id)?),
            Some("failed") => Progress::failed("MemOS could not process the messages"),
            Some(_) => Progress::Working,
            // The task is not known: what there is of the conversation tells.
            None => match self.made_of(id)? {
                made if !made.is_empty() => Progress::done(made),
                _ if self.has(id)? => Progress::Working,
                _ => Progress::failed("MemOS does not have the messages"),
            },
        })
    }
}

impl Health for Memos {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        let many =
            self.page(1, 1)?.total.map(|total| format!(", {total} memories")).unwrap_or_default();
        Ok(Report { summary: format!("MemOS answers at {}{many}", self.config.url) })
    }
}

impl Wipes for Memos {
    fn wipe(&self) -> Result<ForgetScopeResponse, Error> {
        self.post::<Value>("/delete/memory", &json!({"user_id": self.user}))?;
        // The material stays in its conversations.
        Ok(Extent::HistoryKept.into())
    }
}
