//! What must hold of any input, however it came to be. The properties draw inputs for these rules,
//! the targets of `tests/fuzz` let libFuzzer look for them. Crates `time`, `httpdate`, `serde_json`
//! and `url` say what is right wherever they have an opinion.

pub mod addresses;
pub mod answers;
pub mod peers;
pub mod records;
pub mod settings;
