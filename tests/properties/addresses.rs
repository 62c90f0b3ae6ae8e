//! Addresses: peers' out of a bucket, and the bucket's own.

use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::select;

use edgelect::store::s3::{S3, S3Config};

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::addresses;

const REGRESSIONS: &str = "tests/properties/regressions/addresses.txt";

/// A host, or what somebody may try to pass for one.
fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z0-9_-]{1,6}(\\.[a-zA-Z0-9_-]{1,6}){0,3}",
        2 => any::<IpAddr>().prop_map(|ip| match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        }),
        2 => "\\[(::)?[0-9a-fA-F:.]{0,12}\\]?",
        2 => "(0x?)?[0-9a-f]{1,4}(\\.(0x?)?[0-9]{1,3}){0,3}\\.?",
        2 => draw::word("localhost a.localhost LOCALHOST 127.0.0.1 127.1 0 0x7f.1 169.254.169.254 \
                         [fe80::1] [::ffff:169.254.169.254] [::ffff:127.0.0.1] [::] 0.0.0.0 \
                         xn--bcher-kva.example a%2eb a\u{3002}b ⓛocalhost"),
        1 => draw::text(12),
    ]
}

fn address() -> impl Strategy<Value = String> {
    let port = prop_oneof![
        3 => Just(String::new()),
        3 => ":[0-9]{0,6}",
        1 => "[:/@?#\\\\]{1,2}[a-z0-9]{0,4}",
    ];
    (host(), port).prop_map(|(host, port)| [host, port].concat())
}

#[test]
fn c68_an_address_out_of_a_bucket_leads_where_it_says_or_nowhere() {
    hold(REGRESSIONS, 6_000, (address(), address()), |(addr, own)| {
        saw("asked", addresses::url_of(&addr, &own, None).is_some());
        addresses::peers(&addr, &own);
    });
    drew(["asked"], 500);
}

#[test]
fn every_ip_address_is_a_host_in_the_spelling_of_urls() {
    hold(REGRESSIONS, 3_000, any::<IpAddr>(), addresses::ip);
    // Runs of zeros of every length and place: few of the drawn ones have any.
    let segments = prop::array::uniform8(prop_oneof![Just(0_u16), any::<u16>(), 0..16_u16]);
    hold(REGRESSIONS, 3_000, segments, |segments| addresses::ip(IpAddr::from(segments)));
}

fn config() -> impl Strategy<Value = S3Config> {
    let scheme = prop_oneof![
        8 => Just("https://"),
        3 => select(vec!["http://", "HTTPS://", "ftp://", ""]),
    ];
    let path = prop_oneof![
        4 => Just(String::new()),
        2 => "(/[a-z.~_-]{0,4}){0,3}",
        1 => "[/?#@\\\\%][a-z]{0,4}",
    ];
    let aws = "https://(jobs\\.)?s3[.-](eu|us|cn)-west-[0-9]\\.amazonaws\\.com(\\.cn)?";
    let endpoint = prop_oneof![
        6 => (scheme, address(), path)
            .prop_map(|(scheme, address, path)| [scheme, &address, &path].concat()),
        2 => aws,
        1 => draw::text(20),
    ];
    let bucket = prop_oneof![6 => "[a-z0-9][a-z0-9.-]{1,8}[a-z0-9]", 1 => draw::text(6)];
    let region =
        prop_oneof![4 => "(eu|us|cn)-west-[0-9]", 1 => Just("auto".to_owned()), 1 => draw::text(6)];
    let key = prop_oneof![
        4 => "[a-z]{1,4}(/[a-zA-Z0-9 %+?#&=@!~'()*ä漢.-]{1,6}){0,3}",
        2 => draw::text(12),
    ];
    let (endpoint, region) = (prop::option::weighted(0.9, endpoint), prop::option::of(region));
    (endpoint, bucket, region, any::<Option<bool>>(), key).prop_map(
        |(endpoint, bucket, region, path_style, key)| S3Config {
            endpoint,
            bucket,
            region,
            path_style,
            key,
            ..S3Config::default()
        },
    )
}

#[test]
fn the_url_of_a_bucket_is_what_every_url_parser_reads() {
    hold(REGRESSIONS, 6_000, config(), |config| {
        saw("accepted", S3::new(config.clone()).is_ok());
        addresses::bucket(&config);
    });
    drew(["accepted"], 500);
}
