//! The test runner of wasm-bindgen, as `wasm-bindgen-test-runner` is.

fn main() {
    let ended = wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os());
    ended.expect("the tests pass");
}
