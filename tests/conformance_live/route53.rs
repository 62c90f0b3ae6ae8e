//! Route 53 beside the list: what DNS shows of a lease.

use edgelect::lease::{Lease, Stamp};
use edgelect::request::{self, Response};
use edgelect::{Host, Route53Store};

use crate::aws::{Aws, DOMAIN};
use crate::conformance::{create, found, record, update};
use crate::conformance_live::real::{Native, native};

/// A zone of its own.
struct Zone {
    aws: Aws<Native>,
    id: String,
}

impl Zone {
    async fn new() -> Self {
        let aws = super::aws();
        Self { id: aws.new_zone().await, aws }
    }

    fn store(&self, shard: &str) -> Route53Store<Native> {
        self.aws.record(&self.id, shard)
    }

    /// A signed request to the service itself.
    async fn raw(&self, method: &str, path: &str, body: &str) -> Response {
        let url = [&self.aws.endpoint, "/2013-04-01", path].concat();
        let method = method.parse().expect("a method");
        let request = request::new(method, &url, &[], body.into()).expect("the URL is one");
        self.aws.ask("route53", request).await
    }

    /// What a resolver would be given: the strings of each value, joined.
    async fn resolved(&self, shard: &str) -> Vec<String> {
        let name = format!("lock.{shard}.{DOMAIN}.");
        let path = format!("/hostedzone/{}/rrset?maxitems=1&name={name}&type=TXT", self.id);
        let answer = self.raw("GET", &path, "").await;
        let text = String::from_utf8(answer.into_body().bytes).expect("XML is text");
        let text = text.replace("&quot;", "\"");
        let values = text.split("<Value>").skip(1).filter_map(|rest| rest.split("</Value>").next());
        values.map(|value| value.trim_matches('"').replace("\" \"", "")).collect()
    }
}

/// A change of a batch that deletes or creates the record set with these values.
fn change(action: &str, shard: &str, values: &[&str]) -> String {
    let value = |value: &&str| {
        let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        format!("<ResourceRecord><Value>{value}</Value></ResourceRecord>")
    };
    let values: String = values.iter().map(value).collect();
    format!(
        "<Change><Action>{action}</Action><ResourceRecordSet><Name>lock.{shard}.{DOMAIN}</Name>\
         <Type>TXT</Type><TTL>60</TTL><ResourceRecords>{values}</ResourceRecords>\
         </ResourceRecordSet></Change>"
    )
}

#[tokio::test]
async fn the_lock_is_seen_as_dns_shows_it_and_a_foreign_record_is_read() {
    let zone = Zone::new().await;
    let store = zone.store("seen");
    let now_ms = native().now().wall_ms;
    let now_s = now_ms / 1_000;
    let at =
        |sequence: u64, last_updated: Stamp| Lease { last_updated, ..record("worker-1", sequence) };
    let first = create(&store, at(1, Stamp::At(now_ms as i64))).await.expect("a new record");
    let shown = zone.resolved("seen").await;
    let (owner, epoch) = shown[0].split_once(' ').expect("owner and epoch");
    assert_eq!(owner, "worker-1");
    assert!((now_s + 5..now_s + 60).contains(&epoch.parse::<u64>().expect("seconds")), "{epoch}");
    assert!(shown[1].starts_with("~edgelect {"), "{shown:?}");
    update(&store, at(2, Stamp::Released), &first).await.expect("the version is current");
    assert_eq!(zone.resolved("seen").await[0], "worker-1 0");
    let (version, _) = found(&store).await;
    let values: Vec<&str> = version.0.split('\n').collect();
    let theirs = format!("\"coordinator-2 {}\"", now_s + 40);
    let changes = [change("DELETE", "seen", &values), change("CREATE", "seen", &[&theirs])];
    let batch = format!(
        "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
         <ChangeBatch><Changes>{}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>",
        changes.concat()
    );
    let answer = zone.raw("POST", &format!("/hostedzone/{}/rrset/", zone.id), &batch).await;
    assert_eq!(answer.status().as_u16(), 200, "{}", String::from_utf8_lossy(&answer.body().bytes));
    let (_, lease) = found(&store).await;
    assert_eq!((lease.leader_id.as_str(), lease.term), ("coordinator-2", None));
    let lease_ms = lease.lease_ms.expect("it has an epoch");
    assert!((20_000..=42_000).contains(&lease_ms), "{lease_ms}");
}
