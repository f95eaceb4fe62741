//! placeholder
#[derive(Debug)]
pub struct SledStore;
#[derive(Debug)]
pub struct SledOptions;
