//! DynamoDB and Route 53 as an emulator has them, for every host: a table, a zone, and the stores in them.

use edgelect::driver::Host;
use edgelect::request::{self, Request, Response};
use edgelect::sigv4::{self, Coverage, KeyCache};
use edgelect::{Credentials, DynamoDbConfig, DynamoDbStore, Route53Config, Route53Store};

const DOMAIN: &str = "conformance.example.com";

pub fn post(url: &str, headers: &[(&str, &str)], body: String) -> Request {
    request::new(http::Method::POST, url, headers, body.into_bytes()).expect("the URL is one")
}

/// One account, asked through a host.
pub struct Aws<H> {
    pub host: H,
    pub endpoint: String,
    pub credentials: Credentials,
}

impl<H: Host + Clone> Aws<H> {
    fn random(&self) -> String {
        let random = self.host.random().expect("the host has randomness");
        format!("{:032x}", u128::from_le_bytes(random))
    }

    /// One call of a service's own, signed, that must succeed.
    async fn call(&self, service: &str, request: Request) -> String {
        let answer = self.ask(service, request).await;
        assert!(matches!(answer.status().as_u16(), 200 | 201), "{service}: {answer:?}");
        String::from_utf8(answer.into_body().bytes).expect("the answer is text")
    }

    pub async fn ask(&self, service: &str, mut request: Request) -> Response {
        let (now_ms, keys) = (self.host.now().wall_ms, &mut KeyCache::default());
        let (scope, coverage) = (["us-east-1", service], &Coverage::SERVICE);
        sigv4::sign(&mut request, &self.credentials, scope, now_ms, keys, coverage)
            .expect("the credentials can be sent");
        self.host.fetch(request, 1 << 20).await.expect("an answer")
    }

    pub async fn new_table(&self) -> String {
        let table = format!("conformance-{}", &self.random()[..8]);
        let url = format!("{}/", self.endpoint);
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", "DynamoDB_20120810.CreateTable"),
        ];
        let body = format!(
            r#"{{"TableName":"{table}","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[
            {{"AttributeName":"pk","AttributeType":"S"}},{{"AttributeName":"sk","AttributeType":"S"}}],"KeySchema":[
            {{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}]}}"#
        );
        self.call("dynamodb", post(&url, &headers, body)).await;
        table
    }

    pub fn item(&self, table: &str, shard: &str) -> DynamoDbStore<H> {
        let (endpoint, region) = (Some(self.endpoint.clone()), None);
        let (table, shard_id) = (table.to_owned(), shard.to_owned());
        let config = DynamoDbConfig { endpoint, region, table, shard_id, lease_ms: 3_000 };
        DynamoDbStore::new(config, self.credentials.clone(), self.host.clone())
            .expect("a usable configuration")
    }

    pub async fn new_zone(&self) -> String {
        let url = format!("{}/2013-04-01/hostedzone", self.endpoint);
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
             <Name>{DOMAIN}</Name><CallerReference>{}</CallerReference></CreateHostedZoneRequest>",
            self.random()
        );
        let answer = self.call("route53", post(&url, &[], body)).await;
        let (_, rest) = answer.split_once("<Id>/hostedzone/").expect("it names the zone");
        rest.split('<').next().expect("there is always a first").to_owned()
    }

    pub fn record(&self, zone: &str, key: &str) -> Route53Store<H> {
        let config = Route53Config {
            endpoint: Some(self.endpoint.clone()),
            hosted_zone_id: zone.to_owned(),
            record_prefix: "lock".to_owned(),
            domain_name: DOMAIN.to_owned(),
            // A label, not a path.
            shard_id: key.replace(['/', '.'], "-"),
            lease_ms: 3_000,
        };
        Route53Store::new(config, self.credentials.clone(), self.host.clone())
            .expect("a usable configuration")
    }
}
