/** What bundlers for Workers make of the import: the compiled module, for `initSync({ module })` of the glue. */
declare const module: WebAssembly.Module;
export = module;
