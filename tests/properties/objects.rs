//! JSON: objects of any values, and numbers in any spelling.

use proptest::collection::vec;
use proptest::prelude::*;

use edgelect::json::{self, Object, Writer};

use super::draw;
use super::hold::hold;
use super::rules::objects;

const REGRESSIONS: &str = "tests/properties/regressions/objects.txt";

#[test]
fn objects_read_as_serde_json_reads_them_even_damaged() {
    let fields = vec((draw::text(6), draw::value()), 0..8).prop_map(draw::object);
    let hits = vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    hold(REGRESSIONS, 15_000, (fields, hits), |(text, hits)| {
        objects::bytes(&draw::damaged(text.into_bytes(), &hits));
    });
}

#[test]
fn nesting_of_any_depth_is_read_where_serde_json_reads_it() {
    let around = (prop::sample::select(vec!["[", "{\"a\":"]), 100..140_usize, any::<bool>());
    hold(REGRESSIONS, 300, around, |(open, depth, closed)| {
        let close = if open == "[" { "]" } else { "}" };
        let close = if closed { close.repeat(depth) } else { String::new() };
        let text = format!("{{\"x\":{}1{close}}}", open.repeat(depth));
        objects::bytes(text.as_bytes());
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        assert_eq!(Object::read(text.as_bytes()).is_some(), theirs.is_ok(), "{depth}");
    });
}

#[test]
fn what_is_written_reads_back_with_the_last_of_a_name() {
    hold(REGRESSIONS, 5_000, vec((draw::text(3), draw::text(20)), 0..6), |fields| {
        let mut writer = Writer::new();
        for (name, text) in &fields {
            writer.text(name, text);
        }
        let object = Object::read(writer.end().as_bytes()).expect("it was written");
        for (name, _) in &fields {
            let last = fields.iter().rev().find(|(other, _)| other == name);
            let found = object.get(name).and_then(json::text);
            assert_eq!(found.as_ref(), last.map(|(_, text)| text));
        }
    });
}
