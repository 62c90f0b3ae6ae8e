//! `bind INPUT OUT_DIR OUT_NAME [typescript] [reset-state]`: what `wasm-bindgen --target web` would write.

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, out_dir, out_name, options @ ..] = args.as_slice() else {
        panic!("input, folder and name are needed, not {args:?}");
    };
    let wants = |option: &str| options.iter().any(|given| given == option);
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    let written = bindgen.web(true).and_then(|bindgen| {
        bindgen
            .input_path(input)
            .out_name(out_name)
            .typescript(wants("typescript"))
            .reset_state_function(wants("reset-state"))
            .omit_default_module_path(false)
            .generate(out_dir)
    });
    written.expect("the wasm can be bound");
}
