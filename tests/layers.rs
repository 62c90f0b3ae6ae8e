//! Holds the house of ARCHITECTURE.md: imports point down only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each module of the sources and its text.
fn found() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    sources(Path::new("src"), "", &mut found);
    found
}

/// The layer of each module: every one stands on the page, once. A module may use its own layer's contracts and
/// everything below.
fn layers(found: &BTreeMap<String, String>) -> BTreeMap<&str, u32> {
    let page = fs::read_to_string("ARCHITECTURE.md").expect("the page is there");
    let named = named(&page);
    for (file, _) in &named {
        assert!(found.contains_key(*file), "ARCHITECTURE.md names src/{file}.rs: it is not there");
    }
    let layer = |module: &String| {
        let of_file: Vec<_> = named.iter().filter(|(file, _)| file == module).collect();
        let [(_, layer)] = of_file[..] else {
            panic!("ARCHITECTURE.md names src/{module}.rs {} times with a layer", of_file.len())
        };
        *layer
    };
    found.keys().map(|module| (module.as_str(), layer(module))).collect()
}

/// Each file that the page names with its layer: `` `election/claim.rs` (5) ``.
fn named(page: &str) -> Vec<(&str, u32)> {
    let pieces: Vec<&str> = page.split('`').collect();
    let layer_of = |pair: &[&'_ str]| pair[1].strip_prefix(" (")?.split_once(')')?.0.parse().ok();
    let pairs = pieces.windows(2).skip(1).step_by(2);
    pairs.filter_map(|pair| Some((pair[0].strip_suffix(".rs")?, layer_of(pair)?))).collect()
}

fn sources(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the source folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8");
        let name = format!("{prefix}{stem}");
        if path.is_dir() {
            sources(&path, &format!("{name}/"), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(name, fs::read_to_string(&path).expect("a source file is text"));
        }
    }
}

/// The modules that a source names after `crate::`, outside its tests.
fn imports(text: &str, known: &BTreeMap<String, String>) -> Vec<String> {
    let shipped = text.split("#[cfg(test)]").next().unwrap_or(text);
    let mut named = Vec::new();
    for rest in shipped.split("crate::").skip(1) {
        let list = match rest.strip_prefix('{') {
            Some(inner) => inner.split('}').next().unwrap_or("").split(',').collect(),
            None => vec![rest],
        };
        for item in list {
            let path: Vec<&str> = item.trim().split("::").collect();
            if path[0].is_empty() {
                continue;
            }
            let word = |text: &str| -> String {
                text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
            };
            let first = word(path[0]);
            let second = path.get(1).map(|second| word(second)).unwrap_or_default();
            let nested = format!("{first}/{second}");
            named.push(if known.contains_key(&nested) { nested } else { first });
        }
    }
    named
}

#[test]
fn imports_point_down_only() {
    let found = found();
    let layers = layers(&found);
    for (module, text) in &found {
        let own = layers[module.as_str()];
        for import in imports(text, &found).iter().filter(|import| *import != module) {
            let Some(layer) = layers.get(import.as_str()) else {
                panic!("{module} names crate::{import}, which is no module");
            };
            // Contracts of one layer may know each other: a store's outcomes carry a record's reading.
            let contract = own == 3 && *layer == 3;
            assert!(*layer < own || contract, "{module} ({own}) imports {import} ({layer})");
        }
    }
}

#[test]
fn stores_and_the_election_do_not_know_each_other_and_nobody_below_the_faces_knows_a_host() {
    let found = found();
    for (module, text) in &found {
        let named = imports(text, &found);
        if module.starts_with("store/") || module == "sigv4" {
            assert!(!named.contains(&"election".to_owned()), "{module} knows the election");
        }
        if module == "election" {
            assert!(named.iter().all(|name| !name.starts_with("store/")), "it knows a store");
        }
        let at_home = module == "workerd" || module.starts_with("workerd/");
        let faces = "web bucket custom figures js js/many js/probe js/settle js/shown worker \
                     worker/slot lib";
        if !at_home && faces.split(' ').all(|face| face != module) {
            assert!(!named.contains(&"web".to_owned()), "{module} knows a host");
            assert!(!text.contains("wasm_bindgen"), "{module} knows JavaScript");
        }
    }
}

/// The simulator runs what ships: every planted bug is one `false` there.
#[test]
fn nothing_but_the_planted_bugs_differs_between_what_is_tested_and_what_ships() {
    let found = found();
    let times = |text: &String| text.matches("feature = \"planted\"").count();
    let known = found.iter().map(|(module, text)| (module.as_str(), times(text)));
    let knowing: Vec<_> = known.filter(|(_, times)| *times > 0).collect();
    assert_eq!(knowing, [("lib", 2), ("planted", 4)]);
}
