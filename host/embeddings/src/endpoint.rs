//! Somebody else's model: an endpoint in the form of OpenAI's (`POST …/embeddings`).

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::EmbeddingsError;
use super::model::Model;
use memhost_ports::{EmbeddingModel, OutgoingCounter};
use memhost_types::{BillingType, Microcents, Usage};

/// The time limit of a batch, with all of its requests. It is shorter than the default limit of a
/// provider call, so that the error names the endpoint.
const TIMEOUT: Duration = Duration::from_secs(25);
/// The most bytes of an answer: for each number with its space, for the JSON around a vector, and
/// for the JSON around all.
const NUMBER: u64 = 48;
const VECTOR: u64 = 1 << 10;
const ENVELOPE: u64 = 64 << 10;
/// Tokens of a text beside those of its bytes: it begins, it ends, and some models are told what it
/// is for.
const MARKS: u64 = 16;
const MAX_DIMENSIONS: u32 = 4_096;
const BATCH: usize = 256;
/// How an endpoint refuses what it was sent, mostly a text beyond the model's window: 400, 413 or
/// 422.
const REFUSALS: [u16; 3] = [400, 413, 422];
/// In bytes: what is no longer than this is refused for another reason.
const SHORT: usize = 512;

#[cfg(test)]
mod tests;

/// Which endpoint, and what it takes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointOptions {
    /// Up to where `/embeddings` begins, such as `https://api.openai.com/v1`.
    pub url: String,
    /// The model as the endpoint knows it.
    pub model: String,
    /// Numbers that its vectors have, 1 to 4,096.
    pub dimensions: u32,
    /// The key that requests carry; the configuration file names the environment variable that has
    /// it.
    #[serde(skip)]
    pub key: Option<String>,
    /// Whether nothing is asked of it: the host is a restored copy.
    #[serde(skip)]
    pub is_quiet: bool,
    /// The environment variable with that key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The price of a million tokens in cents; 0 if nobody charges by the token.
    #[serde(default)]
    pub cents_per_million_tokens: f64,
}

impl std::fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointOptions")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The endpoint.
pub(super) struct Endpoint {
    options: EndpointOptions,
    address: String,
    host: String,
    /// Where requests go, as they are counted.
    origin: String,
    about: EmbeddingModel,
    agent: ureq::Agent,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
}

#[derive(Deserialize)]
struct Response {
    data: Vec<Item>,
    #[serde(default)]
    usage: Tokens,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    total_tokens: u64,
    prompt_tokens: u64,
}

impl Endpoint {
    /// # Errors
    /// Where the settings will not do.
    pub(super) fn new(options: EndpointOptions) -> Result<Self, EmbeddingsError> {
        let wrong =
            |field, problem: &str| EmbeddingsError::Setting { field, problem: problem.to_owned() };
        let uri: http::Uri = options.url.parse().map_err(|_| wrong("url", "is not an address"))?;
        let host = uri.authority().map(|authority| authority.host().to_owned());
        let (Some(host), Some(scheme @ ("http" | "https"))) = (host, uri.scheme_str()) else {
            return Err(wrong(
                "url",
                "is not an address; write one such as https://api.openai.com/v1",
            ));
        };
        if options.model.is_empty() || options.model.len() > 200 {
            return Err(wrong("model", "is to have 1 to 200 characters"));
        }
        if !(1..=MAX_DIMENSIONS).contains(&options.dimensions) {
            return Err(wrong("dimensions", "is to be 1 to 4096"));
        }
        if !(0.0..=1e6).contains(&options.cents_per_million_tokens) {
            return Err(wrong("cents_per_million_tokens", "is to be 0 to 1000000"));
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT));
        Ok(Self {
            address: format!("{}/embeddings", options.url.trim_end_matches('/')),
            about: EmbeddingModel {
                name: format!("{}@{host}", options.model),
                dimensions: options.dimensions,
            },
            agent: config.build().into(),
            origin: match uri.port_u16() {
                Some(port) => format!("{scheme}://{host}:{port}"),
                None => format!("{scheme}://{host}"),
            },
            host,
            options,
        })
    }

    /// The most bytes of an answer for so many texts. Who sends more answers something else.
    fn max_answer(&self, texts: usize) -> u64 {
        ENVELOPE + texts as u64 * (VECTOR + u64::from(self.options.dimensions) * NUMBER)
    }

    fn ask(
        &self,
        texts: &[String],
        until: Instant,
        sent: &OutgoingCounter,
    ) -> Result<Response, EmbeddingsError> {
        if self.options.is_quiet {
            return Err(EmbeddingsError::Endpoint(format!(
                "{} is not asked: the host is quiet, because its data directory was restored from \
                 a backup; `memhost serve --end-quiet` ends that",
                self.host
            )));
        }
        let failed = |error: ureq::Error| {
            EmbeddingsError::Endpoint(format!("{} failed: {error}", self.host))
        };
        let remaining =
            until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut request =
            self.agent.post(&self.address).config().timeout_global(Some(remaining)).build();
        if let Some(key) = &self.options.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = Request { model: &self.options.model, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&body)
            .map_err(|error| EmbeddingsError::Endpoint(error.to_string()))?;
        sent.lock().sent(&self.origin, true, (self.address.len() + body.len()) as u64);
        let mut response = request.content_type("application/json").send(&body).map_err(failed)?;
        if !response.status().is_success() {
            sent.lock().answered(&self.origin, true, 0);
            // What it says may repeat the key or a text.
            let status = response.status().as_u16();
            if REFUSALS.contains(&status) {
                return Err(EmbeddingsError::Refused { host: self.host.clone(), status });
            }
            let hint = if status == 401 { "; look at the key that `key_env` names" } else { "" };
            return Err(EmbeddingsError::Endpoint(format!(
                "{} answered {status}{hint}",
                self.host
            )));
        }
        let answer =
            response.body_mut().with_config().limit(self.max_answer(texts.len())).read_to_vec();
        let answer = answer.map_err(failed)?;
        sent.lock().answered(&self.origin, true, answer.len() as u64);
        // The parser's error would repeat what the endpoint wrote, and that may be the key.
        serde_json::from_slice(&answer).map_err(|_| {
            EmbeddingsError::Endpoint(format!("{} failed: no list of vectors came", self.host))
        })
    }

    /// One vector a text, and the tokens of all.
    fn ask_for_vectors(
        &self,
        texts: &[String],
        until: Instant,
        sent: &OutgoingCounter,
    ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError> {
        let response = self.ask(texts, until, sent)?;
        let wrong =
            |what: String| EmbeddingsError::Endpoint(format!("{} answered {what}", self.host));
        let dimensions = self.options.dimensions as usize;
        let mut vectors = vec![Vec::new(); texts.len()];
        for item in response.data {
            if item.embedding.len() != dimensions || item.embedding.iter().any(|x| !x.is_finite()) {
                return Err(wrong(format!(
                    "a vector that is not of {dimensions} numbers; set `dimensions`"
                )));
            }
            let place = vectors.get_mut(item.index).filter(|vector| vector.is_empty());
            let place = place.ok_or_else(|| wrong("a vector for no text".to_owned()))?;
            *place = unit(&item.embedding)
                .ok_or_else(|| wrong("a vector without a direction".to_owned()))?;
        }
        if vectors.iter().any(Vec::is_empty) {
            return Err(wrong("fewer vectors than texts".to_owned()));
        }
        // No token is shorter than a byte: who counts more makes the bill longer than the text.
        let most: u64 = texts.iter().map(|text| text.len() as u64 + MARKS).sum();
        Ok((vectors, response.usage.total_tokens.max(response.usage.prompt_tokens).min(most)))
    }

    /// The contract cuts a text that is beyond the model's window, and the form of the endpoint has
    /// no word for that: where one is refused, it is sought by halves and cut by halves, so that
    /// the texts beside it are not refused with it.
    fn ask_or_cut(
        &self,
        texts: &[String],
        until: Instant,
        sent: &OutgoingCounter,
    ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError> {
        match (self.ask_for_vectors(texts, until, sent), texts) {
            (Err(EmbeddingsError::Refused { .. }), [text]) if text.len() > SHORT => self
                .ask_or_cut(
                    &[text[..text.floor_char_boundary(text.len() / 2)].to_owned()],
                    until,
                    sent,
                ),
            (Err(EmbeddingsError::Refused { .. }), [_, _, ..]) => {
                let (first, second) = texts.split_at(texts.len() / 2);
                let (mut vectors, tokens) = self.ask_or_cut(first, until, sent)?;
                let (others, more) = self.ask_or_cut(second, until, sent)?;
                vectors.extend(others);
                Ok((vectors, tokens + more))
            }
            (answer, _) => answer,
        }
    }
}

/// The vector of length 1 in the same direction. `None` if there is no direction. Squares of large
/// and of small numbers are no 32-bit numbers.
#[allow(clippy::cast_possible_truncation, reason = "at most 1")]
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    (length > 0.0)
        .then(|| vector.iter().map(|number| (f64::from(*number) / length) as f32).collect())
}

impl Model for Endpoint {
    fn about(&self) -> &EmbeddingModel {
        &self.about
    }

    fn is_local(&self) -> bool {
        false
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(
        &self,
        texts: &[String],
        sent: &OutgoingCounter,
    ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError> {
        // The form refuses a text without characters.
        let texts: Vec<String> = texts
            .iter()
            .map(|text| if text.is_empty() { " ".to_owned() } else { text.clone() })
            .collect();
        self.ask_or_cut(&texts, Instant::now() + TIMEOUT, sent)
    }

    fn usage(&self, tokens: u64) -> Usage {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "money"
        )]
        // Cents a million tokens are microcents a token.
        let cost = (tokens as f64 * self.options.cents_per_million_tokens).round() as u64;
        Usage {
            biller: Some(self.host.clone()),
            model: Some(self.options.model.clone()),
            billing_type: Some(BillingType::MeteredApi),
            embedding_tokens: Some(tokens),
            cost: Some(Microcents(cost)),
            ..Usage::of(&self.host)
        }
    }
}
