//! The page of figures.

use std::fmt::Write;

use edgelect::config::Follow;

use crate::cases::{FOLLOWS, Failovers, Results, STORES_MS, peers_name, rounds, spread};
use worlds::fleet::prices::{Price, STORES, day};
use worlds::fleet::{INTERVAL_MS, LEASE_MS, Peers};

const HOURS_A_MONTH: f64 = 720.0;

pub fn markdown(results: &Results, quick: bool) -> String {
    let mut page = String::new();
    let text = &mut page;
    let _ = writeln!(
        text,
        "# Scale\n\nWritten by `npm run scale -- --write`: groups of one leader and its followers, \
         simulated with the election as it ships (lease {} s, `frequentInterval` {} s, \
         `infrequentInterval` 30 s). A request takes from half to one and a half of the time named. \
         Prices: [operations.md](../operations.md#money).\n",
        LEASE_MS / 1_000,
        INTERVAL_MS / 1_000
    );
    stable(text, results);
    failovers(text, results, quick);
    others(text, results);
    money(text, results);
    page
}

fn stable(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "## A stable group\n\nRequests in an hour. The leader makes PUTs only.\n\n\
         | followers | `follow` | peers | leader's PUTs | GETs of each follower | answered by 304 | \
         questions of each follower | questions to the leader in a second |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for one in &results.stable {
        let (gets, questions) = one.of_follower();
        let requests = &one.requests;
        let unchanged = 100.0 * requests.unchanged as f64 / requests.gets().max(1) as f64;
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {:.0} | {gets:.1} | {unchanged:.0} % | {questions:.1} | {:.1} |",
            grouped(one.setup.followers as u64),
            one.setup.follow.name(),
            peers_name(one.setup.peers),
            one.per_hour(requests.renewals),
            one.per_hour(requests.leader_questions) / 3_600.0
        );
    }
}

fn failovers(text: &mut String, results: &Results, quick: bool) {
    let _ = writeln!(
        text,
        "\n## Failovers, `tight`, without peers\n\nMedian and p99 of {} failovers ({} at 10,000 followers, \
         {} at 100,000; of so few the p99 is the slowest). PUTs are those of members that want to lead.\n\n\
         | followers | store | limit | crash, seconds | PUTs | resignation, seconds | PUTs |\n\
         |---|---|---|---|---|---|---|",
        rounds(quick, 1),
        rounds(quick, 10_000),
        rounds(quick, 100_000)
    );
    for store_ms in STORES_MS {
        let of = |one: &worlds::fleet::Setup| {
            one.store_ms == store_ms && one.follow == Follow::Tight && one.peers == Peers::Off
        };
        for one in results.failovers(of) {
            let limit = if one.setup.limited { "one write a second" } else { "none" };
            let _ = writeln!(
                text,
                "| {} | {store_ms} ms | {limit} | {} |",
                grouped(one.setup.followers as u64),
                cells(one)
            );
        }
    }
}

fn others(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "\n## Failovers, the others\n\n\
         | followers | `follow` | peers | store | limit | crash, seconds | PUTs | resignation, seconds | PUTs |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for one in results.failovers(|one| one.peers != Peers::Off || one.follow != Follow::Tight) {
        let limit = if one.setup.limited { "one write a second" } else { "none" };
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} ms | {limit} | {} |",
            grouped(one.setup.followers as u64),
            one.setup.follow.name(),
            peers_name(one.setup.peers),
            one.setup.store_ms,
            cells(one)
        );
    }
}

fn cells(one: &Failovers) -> String {
    let kinds = [&one.crashes, &one.resignations].map(|kind| {
        let (median_ms, p99_ms) = spread(kind, |failover| failover.took_ms);
        let (median, p99) = spread(kind, |failover| failover.claims);
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let (median_s, p99_s) = (seconds(median_ms), seconds(p99_ms));
        format!("{median_s:.1} / {p99_s:.1} | {} / {}", grouped(median), grouped(p99))
    });
    kinds.join(" | ")
}

fn money(text: &mut String, results: &Results) {
    let _ = writeln!(
        text,
        "\n## Money\n\nUS dollars in a month of 30 days for the requests of a whole stable group. Prices of {}, no \
         free allowance taken off.\n\n| followers | store | {} |\n|---|---|---|---|---|---|---|---|",
        day(),
        FOLLOWS
            .iter()
            .flat_map(|follow| [
                format!("`{}`", follow.name()),
                format!("`{}`, peers", follow.name())
            ])
            .collect::<Vec<_>>()
            .join(" | ")
    );
    let mut sizes: Vec<usize> = results.stable.iter().map(|one| one.setup.followers).collect();
    sizes.dedup();
    for (followers, store) in sizes.into_iter().flat_map(|size| STORES.map(|store| (size, store))) {
        let of = FOLLOWS.into_iter().flat_map(|follow| [(follow, Peers::Off), (follow, Peers::On)]);
        let costs: Vec<String> = of
            .map(|(follow, peers)| {
                let dollars = month(results, followers, follow, peers, store);
                if dollars < 100.0 {
                    format!("{dollars:.2}")
                } else {
                    grouped(dollars.round() as u64)
                }
            })
            .collect();
        let _ =
            writeln!(text, "| {} | {store} | {} |", grouped(followers as u64), costs.join(" | "));
    }
}

/// What a stable group costs in a month.
pub fn month(
    results: &Results,
    followers: usize,
    follow: Follow,
    peers: Peers,
    store: &str,
) -> f64 {
    let is = |one: &worlds::fleet::Setup| {
        (one.followers, one.follow, one.peers) == (followers, follow, peers)
    };
    let one = results.stable(is).next().expect("every stable group is simulated");
    let per_month = |count| one.per_hour(count) * HOURS_A_MONTH;
    Price::of(store).dollars(per_month(one.requests.puts()), per_month(one.requests.gets()))
}

/// 12345 as 12,345.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are text"))
        .collect();
    groups.join(",")
}
