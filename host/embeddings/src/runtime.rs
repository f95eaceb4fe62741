//! The model at work: off the executor, a bounded number of batches at a time, questions
//! remembered.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;

use super::endpoint::{Endpoint, EndpointOptions};
use super::error::EmbeddingsError;
use super::installed::{Local, installed};
use super::model::Model;
use memhost_executor::{Turns, spawn_blocking};
use memhost_ports::{EmbeddedTexts, Embedder, EmbeddingError, EmbeddingModel, OutgoingCounter};
use memhost_types::{BindingId, CompanyId};

/// Vectors that are remembered; of 384 numbers they take 12 MiB.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// A call of more texts is a job's, and nobody asks for the same again.
const QUESTIONS: usize = 4;

/// Batches that wait for an endpoint at a time.
const AT_AN_ENDPOINT: usize = 16;

/// How long a question waits for its vector, a free place included: somebody waits for the answer,
/// and providers can do without.
const PATIENCE: Duration = Duration::from_secs(8);

/// Where vectors come from.
#[derive(Debug, Clone, Default)]
pub enum EmbeddingsOptions {
    /// The installed model, where there is one in the directory `embeddings` of the data directory.
    #[default]
    Installed,
    /// The one that is installed in this directory.
    InstalledIn(PathBuf),
    /// An endpoint.
    Endpoint(EndpointOptions),
    /// Nowhere.
    Off,
}

/// The host's model, if it has one.
pub struct Embeddings {
    model: Option<Arc<dyn Model>>,
    /// Batches that are computed at a time: half of the cores, so that the other half answers
    /// everybody else. At an endpoint nothing is computed here, and more of them wait for it.
    /// Companies take turns.
    turns: Arc<Turns>,
    remembered: Mutex<LruCache<blake3::Hash, Vec<f32>>>,
    patience: Duration,
}

impl Embeddings {
    /// # Errors
    /// Where what is installed cannot be read or the endpoint's settings will not do.
    pub fn open(options: EmbeddingsOptions, data_dir: &Path) -> Result<Arc<Self>, EmbeddingsError> {
        let local = |directory: &Path| {
            let found = installed(directory)?;
            Ok::<_, EmbeddingsError>(
                found.map(|model| Arc::new(Local::new(directory, model)) as Arc<dyn Model>),
            )
        };
        let model = match options {
            EmbeddingsOptions::Off => None,
            EmbeddingsOptions::Installed => local(&data_dir.join("embeddings"))?,
            EmbeddingsOptions::InstalledIn(directory) => match local(&directory)? {
                None => {
                    return Err(EmbeddingsError::file(
                        &directory,
                        "has no model; `memhost embeddings install FILE.whl --data-dir DIR` puts \
                         one into DIR/embeddings",
                    ));
                }
                found => found,
            },
            EmbeddingsOptions::Endpoint(options) => {
                Some(Arc::new(Endpoint::new(options)?) as Arc<dyn Model>)
            }
        };
        Ok(Arc::new(Self::with(model)))
    }

    fn with(model: Option<Arc<dyn Model>>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let computes_here = model.as_deref().is_none_or(Model::is_local);
        Self {
            model,
            turns: Turns::new(if computes_here { cores / 2 } else { AT_AN_ENDPOINT }),
            remembered: Mutex::new(LruCache::new(REMEMBERED)),
            patience: PATIENCE,
        }
    }

    /// Which model there is.
    pub fn model(&self) -> Option<&EmbeddingModel> {
        self.model.as_deref().map(Model::about)
    }

    /// Whether there is a model, and it computes here: no text leaves the machine.
    pub fn computes_here(&self) -> bool {
        self.model.as_deref().is_some_and(Model::is_local)
    }

    /// For one binding. What one binding asked is not remembered for another: how fast an answer
    /// comes would tell it.
    pub fn for_binding(
        self: &Arc<Self>,
        company: &CompanyId,
        binding: BindingId,
    ) -> Arc<dyn Embedder> {
        Arc::new(OfBinding { embeddings: Arc::clone(self), company: company.clone(), binding })
    }

    fn present(&self) -> Result<&Arc<dyn Model>, EmbeddingError> {
        self.model.as_ref().ok_or_else(|| {
            let how = "`memhost embeddings install FILE.whl` gives it one";
            EmbeddingError::Unavailable(format!("this host has no embedding model; {how}"))
        })
    }
}

struct OfBinding {
    embeddings: Arc<Embeddings>,
    company: CompanyId,
    binding: BindingId,
}

impl OfBinding {
    fn key(&self, model: &EmbeddingModel, text: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(self.binding.0.as_bytes())
            .update(model.name.as_bytes())
            .update(&[0])
            .update(text.as_bytes());
        hasher.finalize()
    }

    async fn compute(
        &self,
        texts: Vec<String>,
        sent: OutgoingCounter,
    ) -> Result<EmbeddedTexts, EmbeddingError> {
        let model = self.embeddings.present()?;
        let is_question = texts.len() <= QUESTIONS;
        let keys: Vec<_> =
            texts.iter().take(QUESTIONS).map(|text| self.key(model.about(), text)).collect();
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts.len()];
        if is_question {
            let mut remembered = self.embeddings.remembered.lock();
            vectors = keys.iter().map(|key| remembered.get(key).cloned()).collect();
        }
        let missing: Vec<usize> =
            (0..texts.len()).filter(|number| vectors[*number].is_none()).collect();
        let (mut tokens, started) = (0, Instant::now());
        for batch in missing.chunks(model.batch()) {
            let turn = self.embeddings.turns.take(self.company.as_str()).await;
            let (model, asked) =
                (Arc::clone(model), batch.iter().map(|number| texts[*number].clone()));
            let (asked, sent): (Vec<String>, _) = (asked.collect(), sent.clone());
            let computed = spawn_blocking(move || {
                let _turn = turn;
                model.embed(&asked, &sent)
            });
            let computed =
                computed.await.map_err(|error| EmbeddingError::Failed(error.to_string()))?;
            let (found, count) =
                computed.map_err(|error| EmbeddingError::Failed(error.to_string()))?;
            tokens += count;
            for (number, vector) in batch.iter().zip(found) {
                if is_question {
                    self.embeddings.remembered.lock().put(keys[*number], vector.clone());
                }
                vectors[*number] = Some(vector);
            }
        }
        let usage = (!missing.is_empty()).then(|| {
            let latency = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            memhost_types::Usage { latency_ms: Some(latency), ..model.usage(tokens) }
        });
        Ok(EmbeddedTexts { vectors: vectors.into_iter().flatten().collect(), usage })
    }
}

#[async_trait::async_trait]
impl Embedder for OfBinding {
    fn model(&self) -> Result<EmbeddingModel, EmbeddingError> {
        Ok(self.embeddings.present()?.about().clone())
    }

    async fn embed(
        &self,
        texts: Vec<String>,
        sent: OutgoingCounter,
    ) -> Result<EmbeddedTexts, EmbeddingError> {
        if texts.len() > QUESTIONS {
            return self.compute(texts, sent).await;
        }
        let late = |_| {
            EmbeddingError::Failed(format!(
                "no vector within {} s",
                self.embeddings.patience.as_secs()
            ))
        };
        tokio::time::timeout(self.embeddings.patience, self.compute(texts, sent))
            .await
            .map_err(late)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use memhost_types::Usage;

    struct Counting {
        about: EmbeddingModel,
        computed: AtomicUsize,
        takes: Duration,
        is_local: bool,
    }

    fn counting(takes: Duration) -> Arc<Counting> {
        let about = EmbeddingModel { name: "m".into(), dimensions: 1 };
        Arc::new(Counting { about, computed: AtomicUsize::new(0), takes, is_local: true })
    }

    impl Model for Counting {
        fn about(&self) -> &EmbeddingModel {
            &self.about
        }

        fn is_local(&self) -> bool {
            self.is_local
        }

        fn batch(&self) -> usize {
            2
        }

        fn embed(
            &self,
            texts: &[String],
            _sent: &OutgoingCounter,
        ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError> {
            assert!(texts.len() <= 2);
            std::thread::sleep(self.takes);
            self.computed.fetch_add(texts.len(), Ordering::Relaxed);
            #[allow(clippy::cast_precision_loss, reason = "a length")]
            Ok((texts.iter().map(|text| vec![text.len() as f32]).collect(), texts.len() as u64))
        }

        fn usage(&self, tokens: u64) -> Usage {
            Usage { embedding_tokens: Some(tokens), ..Usage::of("counting") }
        }
    }

    fn acme() -> CompanyId {
        "acme".parse().unwrap()
    }

    fn binding(number: u128) -> BindingId {
        BindingId(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn questions_are_remembered_for_whoever_asked_and_batches_are_not() {
        let model = counting(Duration::ZERO);
        let embeddings = Arc::new(Embeddings::with(Some(Arc::clone(&model) as Arc<dyn Model>)));
        let (one, other) = (
            embeddings.for_binding(&acme(), binding(1)),
            embeddings.for_binding(&acme(), binding(2)),
        );
        let computed = || model.computed.load(Ordering::Relaxed);
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let first = one.embed(texts(&["a", "bb"]), <_>::default()).await.unwrap();
        assert_eq!(
            (first.vectors, first.usage.unwrap().embedding_tokens),
            (vec![vec![1.0], vec![2.0]], Some(2))
        );
        let again = one.embed(texts(&["bb", "ccc"]), <_>::default()).await.unwrap();
        assert_eq!((again.vectors, computed()), (vec![vec![2.0], vec![3.0]], 3));
        assert!(one.embed(texts(&["a"]), <_>::default()).await.unwrap().usage.is_none());
        other.embed(texts(&["a"]), <_>::default()).await.unwrap();
        assert_eq!(computed(), 4, "what one binding asked is not remembered for another");
        let many = texts(&["a", "bb", "c", "d", "e"]);
        assert_eq!(one.embed(many.clone(), <_>::default()).await.unwrap().vectors.len(), 5);
        one.embed(many, <_>::default()).await.unwrap();
        assert_eq!(computed(), 14);
    }

    #[tokio::test]
    async fn a_question_waits_for_a_slow_model_no_longer_than_it_should_and_a_batch_does() {
        let model = Embeddings::with(Some(counting(Duration::from_millis(100))));
        let embeddings = Embeddings { patience: Duration::from_millis(20), ..model };
        let one = Arc::new(embeddings).for_binding(&acme(), binding(1));
        let texts = |count: usize| vec!["text".to_owned(); count];
        assert!(matches!(
            one.embed(texts(1), <_>::default()).await,
            Err(EmbeddingError::Failed(message)) if message.contains("within"),
        ));
        assert_eq!(one.embed(texts(5), <_>::default()).await.unwrap().vectors.len(), 5);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_company_with_slow_batches_at_an_endpoint_does_not_keep_others_from_it() {
        let model = Counting {
            is_local: false,
            ..Arc::into_inner(counting(Duration::from_millis(400))).unwrap()
        };
        let model = Arc::new(model);
        let embeddings = Embeddings::with(Some(Arc::clone(&model) as Arc<dyn Model>));
        let embeddings =
            Arc::new(Embeddings { patience: Duration::from_millis(700), ..embeddings });
        let texts = |count: usize| vec!["text".to_owned(); count];
        let slow: Vec<_> = (0..30)
            .map(|number| {
                let one = embeddings.for_binding(&acme(), binding(number));
                let texts = texts(6);
                tokio::spawn(async move { one.embed(texts, <_>::default()).await.map(drop) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let other = embeddings.for_binding(&"zeta".parse().unwrap(), binding(99));
        other.embed(texts(1), <_>::default()).await.expect("a turn is free for others");
        for batches in slow {
            batches.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn without_a_model_the_answer_says_how_to_get_one() {
        let directory = tempfile::tempdir().unwrap();
        let embeddings = Embeddings::open(EmbeddingsOptions::default(), directory.path()).unwrap();
        let error = embeddings.for_binding(&acme(), binding(1)).model().unwrap_err().to_string();
        assert!(error.contains("memhost embeddings install"), "{error}");
        assert!(
            Embeddings::open(
                EmbeddingsOptions::InstalledIn(directory.path().into()),
                directory.path()
            )
            .is_err()
        );
    }
}
