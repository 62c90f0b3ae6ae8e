//! Each promise of a page has a test that shows it, `tests/file.rs: name`, in `tests/promises.json` under the page and the
//! first cell of the promise's row. Each of these tests must be there, and no row of such a table may be without one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use edgelect::Problem;
use edgelect::lease::Flaw;

use crate::in_root;

const PAGES: [&str; 4] =
    ["docs/celeriant.md", "docs/failure-modes.md", "docs/object-store-lock.md", "docs/s3lect.md"];

/// The tests of each promise of each page.
type Promises = BTreeMap<String, BTreeMap<String, Vec<String>>>;

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

/// The first cells of the rows of each table of a page.
fn tables(page: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = page.lines().collect();
    let tables = lines.chunk_by(|one, next| one.starts_with('|') == next.starts_with('|'));
    let tables = tables.filter(|lines| lines[0].starts_with('|'));
    tables.map(|lines| lines.iter().skip(2).map(|line| first_cell(line)).collect()).collect()
}

fn first_cell(line: &str) -> &str {
    line[1..].split('|').next().unwrap_or("").trim()
}

/// The promises that a page has no row for, and the rows that stand beside promises without being one.
fn apart<'a>(page: &'a str, promises: &BTreeSet<&'a str>) -> (Vec<&'a str>, Vec<&'a str>) {
    let promise = |row: &&str| promises.contains(row);
    let held: Vec<&str> =
        tables(page).into_iter().filter(|rows| rows.iter().any(promise)).flatten().collect();
    let unseen = promises.iter().filter(|promise| !held.contains(promise)).copied().collect();
    (unseen, held.iter().filter(|row| !promises.contains(*row)).copied().collect())
}

#[test]
fn every_promise_of_a_page_has_its_tests_in_the_list_and_each_of_them_is_there() {
    let list = fs::read_to_string(in_root("tests/promises.json")).expect("the list is there");
    let list: Promises = serde_json::from_str(&list).expect("pages, promises, tests");
    assert_eq!(list.keys().collect::<Vec<_>>(), PAGES);
    for (name, promises) in &list {
        let page = fs::read_to_string(in_root(name)).expect(name);
        let rows = promises.keys().map(String::as_str).collect();
        assert_eq!(apart(&page, &rows), (vec![], vec![]), "{name}: no row, no tests");
        for (promise, tests) in promises {
            assert!(!tests.is_empty(), "{name}: {promise} has no test");
            for test in tests {
                let (file, test) = test.split_once(": ").expect(test);
                assert!(is_source(file), "{name}: {file} is no file of tests");
                let source = fs::read_to_string(in_root(file)).expect(file);
                assert!(has(&source, file, test), "{name} names {file}: {test}: it is not there");
            }
        }
    }
}

#[test]
fn what_the_page_of_errors_quotes_is_said() {
    let (term, ahead_ms, name) = (1, 1, || "a".to_owned());
    let said = [
        Problem::NewerFormat(Some(2)),
        Problem::TermTooHigh,
        Problem::NoEnd,
        Problem::Unreadable(Flaw::NotJson),
        Problem::Contradicted,
        Problem::LongWait,
        Problem::MovingTimes,
        Problem::MovingVersions,
        Problem::DateAhead { ahead_ms },
        Problem::WorkGoesOn { term },
        Problem::LeaseTooLong { lease_ms: 2, max_lease_ms: 1 },
        Problem::SharedServerId { server_id: name(), theirs: name(), ours: name() },
        Problem::SharedName(name()),
    ]
    .map(|problem| problem.to_string());
    let page = fs::read_to_string(in_root("docs/errors.md")).expect("the page is there");
    let (_, section) = page.split_once("## What `status().error` says").expect("its section");
    let rows = section.lines().filter(|line| line.starts_with("| \""));
    let quotes: Vec<&str> =
        rows.flat_map(|row| first_cell(row).split('"').skip(1).step_by(2)).collect();
    assert!(quotes.len() >= said.len(), "each has a row: {quotes:?}");
    for quote in &quotes {
        assert!(said.iter().any(|text| text.contains(quote)), "nothing says {quote:?}");
    }
    for text in said {
        assert!(quotes.iter().any(|quote| text.contains(quote)), "no row is for {text:?}");
    }
}
