//! Pages that promise something name the test that shows it: `tests/file.rs: name` in a code span. Each of these tests
//! must be there, and each row of a table whose last column is `test` must name one.

use std::fs;

const PAGES: [&str; 4] =
    ["docs/celeriant.md", "docs/failure-modes.md", "docs/object-store-lock.md", "docs/s3lect.md"];

/// The tests that a text names: file and name.
fn named(text: &str) -> Vec<(&str, &str)> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter_map(|span| span.split_once(": ")).filter(|(file, _)| is_source(file)).collect()
}

fn is_source(file: &str) -> bool {
    let known = [".rs", ".mjs"].iter().any(|end| file.ends_with(end));
    known && ["src/", "tests/", "examples/"].iter().any(|start| file.starts_with(start))
}

/// Whether a source has a test of this name.
fn has(source: &str, file: &str, name: &str) -> bool {
    if file.ends_with(".mjs") {
        return ["'", "\"", "`"].iter().any(|quote| {
            let escaped = name.replace(quote, &format!("\\{quote}"));
            source.contains(&format!("test({quote}{escaped}{quote}"))
        });
    }
    let head = format!("fn {name}(");
    source.match_indices(&head).any(|(at, _)| {
        let before = source[..at].trim_end();
        let before = before.strip_suffix("async").unwrap_or(before).trim_end().lines().rev();
        before
            .take_while(|line| line.trim_start().starts_with('#'))
            .any(|line| line.contains("test]"))
    })
}

/// The rows of the tables of a page whose last column is `test`.
fn rows(page: &str) -> Vec<&str> {
    let (mut inside, mut rows) = (false, Vec::new());
    for line in page.lines() {
        if !line.starts_with('|') {
            inside = false;
        } else if line.trim_end().ends_with("| test |") {
            inside = true;
        } else if inside && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn every_test_that_a_page_names_is_there_and_every_promise_names_one() {
    for name in PAGES {
        let page = fs::read_to_string(name).expect(name);
        let rows = rows(&page);
        assert!(!rows.is_empty(), "{name} promises nothing");
        for row in rows {
            assert!(!named(row).is_empty(), "{name}: no test is named in {row}");
        }
        for (file, test) in named(&page) {
            let source =
                fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
            assert!(has(&source, file, test), "{name} names {file}: {test}, which is not there");
        }
    }
}

#[test]
fn a_name_counts_only_where_it_is_a_test_of_that_file() {
    let rust = "#[test]\n#[ignore = \"x\"]\nfn a_test() {}\n\nfn a_helper() {}\n";
    assert!(has(rust, "tests/x.rs", "a_test"));
    assert!(has("#[tokio::test]\nasync fn another() {}\n", "tests/x.rs", "another"));
    assert!(!has(rust, "tests/x.rs", "a_helper") && !has(rust, "tests/x.rs", "a_tes"));
    let node = "test('it isn\\'t one', () => {});\n  test(\"two\", f);\nhelper('three');\n";
    assert!(has(node, "tests/x.mjs", "it isn't one") && has(node, "tests/x.mjs", "two"));
    assert!(!has(node, "tests/x.mjs", "three") && !has(node, "tests/x.mjs", "tw"));
    let page = "| promise | test |\n|---|---|\n| a | `tests/x.rs: a_test`, `Get: x` |\n| b | |\n\n| other |\n";
    assert_eq!(rows(page).len(), 2);
    assert_eq!(named(page), [("tests/x.rs", "a_test")]);
}
