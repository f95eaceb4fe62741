//! Parses server-sent events, as the HTML standard defines them.

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The event's name; `message` if the stream gives none.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// The partly read event, and the id to continue from.
#[derive(Debug, Default)]
pub(super) struct Parser {
    name: String,
    data: Vec<String>,
    id: Option<String>,
    last_id: Option<String>,
}

impl Parser {
    /// The id of the last complete event.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Drops the partly read event after a lost connection.
    pub(super) fn restart(&mut self) {
        (self.name, self.data, self.id) = (String::new(), Vec::new(), None);
    }

    /// Adds one line without its line break; answers the event that the line completes.
    pub(super) fn line(&mut self, line: &str) -> Option<Event> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            // Only now: an event that was cut off must be sent again.
            self.last_id = self.id.take().or(self.last_id.take());
            let name = if name.is_empty() { "message".to_owned() } else { name };
            return (!data.is_empty()).then(|| Event { name, data: data.join("\n") });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments keep the connection alive. `retry` is ignored: the client has its own
            // waiting times.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_line_by_line() {
        let mut parser = Parser::default();
        let text = ": hello\n\nevent: operation\r\nid: 7\r\ndata: {\"a\":\ndata: \
                    1}\n\ndata:bare\n\nid\n\nevent: nothing\n\n";
        let found: Vec<Event> = text.lines().filter_map(|line| parser.line(line)).collect();
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
        assert_eq!(found, [event("operation", "{\"a\":\n1}"), event("message", "bare")]);
        assert_eq!(parser.last_id(), Some(""));
        assert_eq!(parser.line("id: 8"), None);
        assert_eq!(parser.line("data: half"), None);
        parser.restart();
        assert_eq!(parser.line(""), None, "half an event is none");
        assert_eq!(parser.last_id(), Some(""), "and comes again");
    }
}
