//! A table of one item in memory, which answers DynamoDB's HTTP, and the hands that reach it otherwise.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use crate::driver::prelude::*;

/// Longer ago than this, the table's TTL process leaves an item alone.
const FIVE_YEARS_S: u64 = 5 * 365 * 86_400;

pub type Item = Map<String, Value>;

/// Clones share the item.
#[derive(Clone)]
pub struct Table {
    host: Virtual,
    pub item: Rc<RefCell<Option<Item>>>,
    pub puts: Rc<Cell<u64>>,
    /// How far ahead a proxy's clock is that names the `Date` of every answer.
    pub date_ahead_ms: Rc<Cell<u64>>,
    /// So many answers from now on have no `Date`.
    pub undated: Rc<Cell<u32>>,
}

impl Table {
    pub fn new(host: &Virtual) -> Self {
        let (item, puts, date_ahead_ms, undated) = Default::default();
        Self { host: host.clone(), item, puts, date_ahead_ms, undated }
    }

    /// The text of an attribute of type S or N.
    pub fn text(&self, name: &str) -> Option<String> {
        let item = self.item.borrow();
        let value = item.as_ref()?.get(name)?;
        Some(value.get("S").or(value.get("N"))?.as_str()?.to_owned())
    }

    pub fn ttl_s(&self) -> Option<u64> {
        self.text("ttl")?.parse().ok()
    }

    /// What the TTL process does now and then: deletes what has run out, but not long ago.
    pub fn expire(&self) {
        let now_s = self.host.wall_ms() / 1_000;
        let gone = self.ttl_s().is_some_and(|ttl_s| ttl_s < now_s && ttl_s + FIVE_YEARS_S > now_s);
        if gone {
            *self.item.borrow_mut() = None;
        }
    }

    /// PutItem of another make, with `attribute_not_exists(pk) OR (attribute_exists(pk) AND #t < :now)`.
    pub fn try_acquire(&self, id: &str, now_s: u64, ttl_s: u64) -> bool {
        if self.item.borrow().is_some() && self.ttl_s().is_none_or(|held_s| held_s >= now_s) {
            return false;
        }
        let item = json!({
            "pk": { "S": "SHARD#jobs" }, "sk": { "S": "LOCK" },
            "ownerId": { "S": id }, "ttl": { "N": ttl_s.to_string() },
        });
        *self.item.borrow_mut() = item.as_object().cloned();
        true
    }

    /// Its UpdateItem, with `ownerId = :me AND #t >= :now`.
    pub fn renew(&self, id: &str, now_s: u64, ttl_s: u64) -> bool {
        let mine = self.text("ownerId").as_deref() == Some(id);
        if !mine || self.ttl_s().is_none_or(|held_s| held_s < now_s) {
            return false;
        }
        let mut item = self.item.borrow_mut();
        let item = item.as_mut().expect("it has an owner");
        item.insert("ttl".to_owned(), json!({ "N": ttl_s.to_string() }));
        true
    }

    pub fn answer(&self, request: &Request) -> Response {
        let asked: Value = serde_json::from_slice(request.body()).expect("requests are JSON");
        assert!(asked["TableName"] == "locks" && request.method() == "POST", "{asked}");
        let (status, body) = match request::text(request.headers(), "x-amz-target") {
            Some("DynamoDB_20120810.GetItem") => {
                assert_eq!(asked["ConsistentRead"], json!(true));
                (200, self.get(&asked))
            }
            Some("DynamoDB_20120810.PutItem") if self.holds(&asked) => {
                let item = asked["Item"].as_object().expect("an item").clone();
                *self.item.borrow_mut() = Some(item);
                self.puts.set(self.puts.get() + 1);
                (200, json!({}))
            }
            Some("DynamoDB_20120810.PutItem") => {
                let code = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
                (400, json!({ "__type": code, "message": "the-message" }))
            }
            other => panic!("nobody asks for {other:?}"),
        };
        self.respond(status, &body)
    }

    fn respond(&self, status: u16, body: &Value) -> Response {
        let date = SystemTime::UNIX_EPOCH
            + Duration::from_millis(self.host.wall_ms() + self.date_ahead_ms.get());
        let date = httpdate::fmt_http_date(date);
        let headers = [("content-type", "application/x-amz-json-1.0"), ("date", &*date)];
        let undated = self.undated.get();
        self.undated.set(undated.saturating_sub(1));
        let headers = headers.into_iter().take(if undated > 0 { 1 } else { 2 });
        request::answer(status, headers, body.to_string().as_bytes().into()).expect("an answer")
    }

    fn get(&self, asked: &Value) -> Value {
        let Some(item) = &*self.item.borrow() else { return json!({}) };
        let names = asked["ProjectionExpression"].as_str().expect("a projection").split(',');
        let names = names.map(|name| named(asked, name));
        let shown = names.filter_map(|name| item.get(&name).map(|value| (name, value.clone())));
        json!({ "Item": shown.collect::<Item>() })
    }

    /// Whether a condition holds: parts of three forms, joined by AND.
    fn holds(&self, asked: &Value) -> bool {
        let item = self.item.borrow();
        let get = |name: &str| item.as_ref().and_then(|item| item.get(&named(asked, name)));
        let condition = asked["ConditionExpression"].as_str().expect("no write is unconditional");
        condition.split(" AND ").all(|part| {
            let inner = |start| part.strip_prefix(start).and_then(|rest| rest.strip_suffix(')'));
            if let Some(name) = inner("attribute_not_exists(") {
                return get(name).is_none();
            }
            if let Some(name) = inner("attribute_exists(") {
                return get(name).is_some();
            }
            let (name, value) = part.split_once(" = ").expect("one of the three forms");
            let value = &asked["ExpressionAttributeValues"][value];
            assert!(value.is_object(), "{asked}");
            get(name) == Some(value)
        })
    }
}

fn named(asked: &Value, name: &str) -> String {
    match &asked["ExpressionAttributeNames"][name] {
        Value::String(full) => full.clone(),
        _ => name.to_owned(),
    }
}
