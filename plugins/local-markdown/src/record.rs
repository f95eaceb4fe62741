//! A record and its file: front matter between `---` lines, then the text, byte for byte.

mod above;
mod fields;
mod front;
mod shown;

pub(crate) use fields::{instant, scope_fields, source_fields};
pub(crate) use front::{Front, Unread};
pub(crate) use shown::{Shown, snippet};

use above::Above;

/// Front matter and text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    /// The text between the `---` lines.
    pub(crate) front: Front,
    /// The rest of the file.
    pub(crate) text: String,
}

const FENCE: &str = "---\n";

impl Record {
    /// The file's content.
    pub(crate) fn encode(&self) -> String {
        if self.front.unread.is_some() {
            return self.text.clone();
        }
        let mut out = String::with_capacity(self.text.len() + 512);
        out.push_str(FENCE);
        self.front.encode(&mut out);
        out.push_str(FENCE);
        out.push_str(&self.text);
        out
    }

    /// Reads a file's content. Without readable front matter the whole content is text.
    pub(crate) fn decode(content: &str) -> Self {
        let whole =
            |unread| Self { front: Front { unread, ..Front::default() }, text: content.to_owned() };
        let Some(above) = Above::of(content) else { return whole(None) };
        let read = match above.is_closed {
            true => Front::decode(above.head),
            false => Err((above.line, "no line `---` ends it".to_owned())),
        };
        match read {
            Ok(front) => Self { front, text: content[above.end..].to_owned() },
            // Between two lines that only separate paragraphs there is text, too.
            Err(_) if !above.has_names() => whole(None),
            Err((line, reason)) => {
                whole(Some(Unread { end: above.end, line: above.line + line, reason }))
            }
        }
    }

    /// Replaces the text. What a person wrote above it and cannot be read stays as it is.
    pub(crate) fn set_text(&mut self, text: String) {
        let kept = self.front.unread.as_ref().and_then(|unread| self.text.get(..unread.end));
        self.text = match kept {
            None => text,
            Some(kept) if kept.ends_with('\n') => format!("{kept}{text}"),
            Some(kept) => format!("{kept}\n{text}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn records_round_trip(
            text: String,
            id: String,
            summary: Option<String>,
            metadata in prop::collection::btree_map(any::<String>(), json(), 0..4),
            added in prop::collection::btree_map("[a-z: \"\n#-]{1,6}-x", json(), 0..3),
        ) {
            let front = Front {
                id: Some(id),
                summary,
                metadata: Some(metadata.into_iter().collect()),
                other: added.into_iter().collect(),
                ..Front::default()
            };
            let record = Record { front, text };
            prop_assert_eq!(Record::decode(&record.encode()), record);
        }
    }

    #[test]
    fn our_front_matter_is_yaml() {
        let front = Front {
            id: Some("\u{7f}: \"quoted\" 標識\n---\n".to_owned()),
            metadata: serde_json::from_str(r##"{"a":null,"b":[1.5e300,{"c":"#x: y"}],"":true}"##)
                .unwrap(),
            ..Front::default()
        };
        let content = Record { front: front.clone(), text: String::new() }.encode();
        let yaml: Value =
            serde_saphyr::from_str(content.trim_start_matches(FENCE).trim_end_matches(FENCE))
                .unwrap();
        assert_eq!(yaml["id"].as_str(), front.id.as_deref());
        assert_eq!(yaml["metadata"], Value::Object(front.metadata.unwrap()));
    }

    #[test]
    fn hand_written_front_matter_is_read_and_kept() {
        let record = Record::decode(
            "---\r\nid: 42\nsummary: >\n  folded\n  text\nmood: happy\n\"a: b\": \
             1\nmetadata:\n  tags: [a, b]\n---\n# Title\n",
        );
        assert_eq!(record.front.id.as_deref(), Some("42"));
        assert_eq!(record.front.summary.as_deref(), Some("folded text\n"));
        assert_eq!(record.front.other["mood"], "happy");
        assert_eq!(record.front.other["a: b"], 1);
        assert_eq!(record.front.metadata.as_ref().unwrap()["tags"][1], "b");
        assert_eq!(record.text, "# Title\n");
        assert_eq!(Record::decode(&record.encode()), record);
    }

    #[test]
    fn a_field_of_another_type_is_kept_aside() {
        let record = Record::decode("---\nmetadata: [1]\nscope: none\nsummary: 7\n---\nx");
        assert_eq!(record.front.other["metadata"][0], 1);
        assert_eq!(record.front.other["scope"], "none");
        assert_eq!(record.front.summary.as_deref(), Some("7"));
        assert_eq!(Record::decode(&record.encode()), record);
    }

    #[test]
    fn what_cannot_be_read_above_a_text_stays_when_the_text_is_replaced() {
        for (above, line) in [
            ("---\ntitle: Frozen\ntags: [deploy]\ntitle: Frozen\n---\n", 4),
            ("\u{feff}---\r\ntitle: \"Frozen\r\n---\r\n", 2),
            ("\n--- \ntitle: [\n...\n", 3),
            ("---\ntitle: Frozen\ntags:\n- a\n  - b\n\t- c\n", 1),
        ] {
            let content = format!("{above}\nDeploys are frozen.\n");
            let mut record = Record::decode(&content);
            let unread = record.front.unread.clone().unwrap();
            assert_eq!((record.text.as_str(), record.encode()), (&*content, content.clone()));
            assert!(unread.line >= line, "{unread:?}");
            record.set_text("Not any more.".to_owned());
            assert_eq!(record.encode(), format!("{above}Not any more."));
            assert_eq!(Record::decode(&record.encode()).front.unread, Some(unread));
        }
    }

    #[test]
    fn front_matter_is_read_as_people_write_it() {
        for fences in [("\n\n---\n", "---\n"), ("--- \t\n", "---  \n"), ("---\n", "...\n")] {
            let record = Record::decode(&format!("{}summary: s\n{}text", fences.0, fences.1));
            assert_eq!((record.front.summary.as_deref(), &*record.text), (Some("s"), "text"));
        }
    }

    #[test]
    fn a_file_without_front_matter_is_all_text() {
        for text in [
            "plain",
            "",
            "---\nnever closed",
            "--- \nx\n---\n",
            "---\n: [\n---\nx",
            "---\nSome prose\n---\nand more",
        ] {
            assert_eq!(
                Record::decode(text),
                Record { front: Front::default(), text: text.to_owned() }
            );
        }
    }
}
