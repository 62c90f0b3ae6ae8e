//! DynamoDB and Route 53 as an emulator has them: a table, a zone, and the stores in them.

use edgelect::request;
use edgelect::sigv4::{self, Coverage, KeyCache};
use edgelect::{Credentials, DynamoDbConfig, DynamoDbStore, Host, Route53Config, Route53Store};
use serde_json::{Value, json};

use crate::conformance_live::real::{Native, credentials, native, random, variable};

const DOMAIN: &str = "conformance.example.com";

/// One account.
pub struct Aws {
    pub endpoint: String,
    pub credentials: Credentials,
}

impl Aws {
    pub fn new() -> Self {
        Self { endpoint: variable("AWS_ENDPOINT"), credentials: credentials("AWS_") }
    }

    /// The status and the text that a service answers to a call of its own, signed.
    async fn call(
        &self,
        service: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> (u16, String) {
        let (host, url) = (native(), format!("{}/{path}", self.endpoint));
        let mut request = request::new(http::Method::POST, &url, headers, body.into_bytes())
            .expect("the URL is one");
        let (scope, coverage) = (["us-east-1", service], &Coverage::SERVICE);
        let (now_ms, keys) = (host.now().wall_ms, &mut KeyCache::default());
        sigv4::sign(&mut request, &self.credentials, scope, now_ms, keys, coverage)
            .expect("the credentials can be sent");
        let answer = host.fetch(request, 1 << 20).await.expect("an answer");
        let status = answer.status().as_u16();
        (status, String::from_utf8(answer.into_body().bytes).expect("the answer is text"))
    }

    pub async fn dynamodb(&self, verb: &str, asked: &Value) -> (u16, Value) {
        let target = format!("DynamoDB_20120810.{verb}");
        let headers =
            [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let (status, answer) = self.call("dynamodb", "", &headers, asked.to_string()).await;
        (status, serde_json::from_str(&answer).expect("JSON"))
    }

    /// With a key of these attributes.
    pub async fn new_table(&self, keys: &[&str]) -> String {
        let table = format!("conformance-{}", &random()[..8]);
        let attribute = |name| json!({ "AttributeName": name, "AttributeType": "S" });
        let part = |(name, kind)| json!({ "AttributeName": name, "KeyType": kind });
        let asked = json!({
            "TableName": table, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": keys.iter().map(attribute).collect::<Vec<_>>(),
            "KeySchema": keys.iter().zip(["HASH", "RANGE"]).map(part).collect::<Vec<_>>(),
        });
        let (status, answer) = self.dynamodb("CreateTable", &asked).await;
        assert_eq!(status, 200, "{answer}");
        table
    }

    pub fn item(&self, table: &str, shard: &str) -> DynamoDbStore<Native> {
        let (endpoint, region) = (Some(self.endpoint.clone()), None);
        let (table, shard_id) = (table.to_owned(), shard.to_owned());
        let config = DynamoDbConfig { endpoint, region, table, shard_id, lease_ms: 3_000 };
        DynamoDbStore::new(config, self.credentials.clone(), native())
            .expect("a usable configuration")
    }

    pub async fn new_zone(&self) -> String {
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
             <Name>{DOMAIN}</Name><CallerReference>{}</CallerReference></CreateHostedZoneRequest>",
            random()
        );
        let (status, answer) = self.call("route53", "2013-04-01/hostedzone", &[], body).await;
        assert!(matches!(status, 200 | 201), "{answer}");
        let (_, rest) = answer.split_once("<Id>/hostedzone/").expect("it names the zone");
        rest.split('<').next().expect("there is always a first").to_owned()
    }

    pub fn record(&self, zone: &str, key: &str) -> Route53Store<Native> {
        let config = Route53Config {
            endpoint: Some(self.endpoint.clone()),
            hosted_zone_id: zone.to_owned(),
            record_prefix: "lock".to_owned(),
            domain_name: DOMAIN.to_owned(),
            // A label, not a path.
            shard_id: key.replace(['/', '.'], "-"),
            lease_ms: 3_000,
        };
        Route53Store::new(config, self.credentials.clone(), native())
            .expect("a usable configuration")
    }
}
