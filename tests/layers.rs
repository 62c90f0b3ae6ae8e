//! Holds the house of ARCHITECTURE.md: imports point down only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each module and the layer it lives on; a module may use its own layer's contracts and everything below.
const LAYERS: [(&str, u32); 56] = [
    ("prelude", 0),
    ("lean", 0),
    ("planted", 0),
    ("planted/bugs", 0),
    ("calendar", 1),
    ("task", 1),
    ("json", 1),
    ("request", 1),
    ("host", 1),
    ("lease", 2),
    ("lease/kubernetes", 2),
    ("clock", 3),
    ("config", 3),
    ("store", 3),
    ("sigv4", 3),
    ("age", 4),
    ("timers", 4),
    ("vars", 4),
    ("slots", 4),
    ("cron", 5),
    ("job", 5),
    ("protocol", 4),
    ("store/heard", 4),
    ("store/memory", 4),
    ("store/s3/address", 4),
    ("store/s3/document", 4),
    ("store/s3", 5),
    ("store/service", 6),
    ("store/dynamodb", 7),
    ("store/route53/xml", 2),
    ("store/route53/record", 4),
    ("store/route53", 7),
    ("store/epochs/listing", 6),
    ("store/epochs", 6),
    ("election", 5),
    ("peer", 6),
    ("driver", 7),
    ("checkpoint", 8),
    ("isolate", 8),
    ("lead", 9),
    ("probe", 8),
    ("scheduled", 10),
    ("remote", 8),
    ("status", 8),
    ("tick", 8),
    ("web", 8),
    ("workerd/host", 8),
    ("workerd/r2", 8),
    ("custom", 9),
    ("bucket", 10),
    ("workerd", 9),
    ("figures", 10),
    ("js", 11),
    ("worker/slot", 11),
    ("worker", 12),
    ("lib", 13),
];

fn sources(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the source folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8");
        let name = format!("{prefix}{stem}");
        if path.is_dir() {
            sources(&path, &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read_to_string(&path).expect("a source file is text"));
        }
    }
}

/// The modules that a source names after `crate::`, outside its tests.
fn imports(text: &str) -> Vec<String> {
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
            let known = LAYERS.iter().any(|(name, _)| *name == nested);
            named.push(if known { nested } else { first });
        }
    }
    named
}

#[test]
fn imports_point_down_only() {
    let layers: BTreeMap<&str, u32> = LAYERS.into_iter().collect();
    let mut found = BTreeMap::new();
    sources(Path::new("src"), "", &mut found);
    assert_eq!(found.len(), layers.len(), "a module is missing in the table: {:?}", found.keys());
    for (module, text) in &found {
        let own = layers[module.as_str()];
        for import in imports(text).iter().filter(|import| *import != module) {
            let Some(layer) = layers.get(import.as_str()) else {
                panic!("{module} names crate::{import}, which is not in the table");
            };
            // Contracts of one layer may know each other: a store's outcomes carry a record's reading.
            let contract = own == 3 && *layer == 3;
            assert!(*layer < own || contract, "{module} ({own}) imports {import} ({layer})");
        }
    }
}

#[test]
fn stores_and_the_election_do_not_know_each_other_and_nobody_below_the_faces_knows_a_host() {
    let mut found = BTreeMap::new();
    sources(Path::new("src"), "", &mut found);
    for (module, text) in &found {
        let named = imports(text);
        if module.starts_with("store/") || module == "sigv4" {
            assert!(!named.contains(&"election".to_owned()), "{module} knows the election");
        }
        if module == "election" {
            assert!(named.iter().all(|name| !name.starts_with("store/")), "it knows a store");
        }
        let at_home = module == "workerd" || module.starts_with("workerd/");
        let faces = ["web", "bucket", "custom", "figures", "js", "worker", "worker/slot", "lib"];
        if !at_home && !faces.contains(&module.as_str()) {
            assert!(!named.contains(&"web".to_owned()), "{module} knows a host");
            assert!(!text.contains("wasm_bindgen"), "{module} knows JavaScript");
        }
    }
}

/// The files that a row of ARCHITECTURE.md names, each with its layer: one for all of them, or one for each.
fn room(row: &str) -> Vec<(&str, &str)> {
    let mut cells = row.trim_start_matches("| ").split(" | ");
    let (Some(files), Some(layers)) = (cells.next(), cells.next()) else { return Vec::new() };
    let files: Vec<&str> = files.split('`').skip(1).step_by(2).collect();
    let layers: Vec<&str> = layers.split(", ").collect();
    let layer = |at| if layers.len() == 1 { layers[0] } else { layers.get(at).unwrap_or(&"none") };
    files.iter().enumerate().map(|(at, file)| (*file, layer(at))).collect()
}

#[test]
fn the_page_names_every_module_on_its_layer() {
    let page = fs::read_to_string("ARCHITECTURE.md").expect("the page is there");
    let rooms: Vec<_> =
        page.lines().filter(|line| line.starts_with("| `")).flat_map(room).collect();
    for (module, layer) in LAYERS {
        let file = ["src/", module, ".rs"].concat();
        // After the first of a row a file may be named by the end of its path.
        let named = |name: &str| file == name || file.ends_with(&["/", name].concat());
        let layer = layer.to_string();
        assert!(
            rooms.iter().any(|(name, on)| named(name) && *on == layer),
            "{file} on layer {layer}"
        );
    }
}

/// The simulator runs what ships: every planted bug is one `false` there.
#[test]
fn nothing_but_the_planted_bugs_differs_between_what_is_tested_and_what_ships() {
    let mut found = BTreeMap::new();
    sources(Path::new("src"), "", &mut found);
    let knowing: Vec<&String> = found
        .iter()
        .filter(|(_, text)| text.contains("feature = \"planted\""))
        .map(|(module, _)| module)
        .collect();
    assert_eq!(knowing, ["lib", "planted"]);
    assert_eq!(found["lib"].matches("feature = \"planted\"").count(), 2, "it is public or not");
    assert_eq!(found["planted"].matches("feature = \"planted\"").count(), 4);
}
