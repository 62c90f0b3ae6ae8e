//! What the groups of one trigger share: the requests that it may make, and its connections.

use super::{CRON, Env, Group, JOB_URL, SUBREQUESTS, suffix_of};
use crate::config::ConfigError;
use crate::vars::{Given, digits};

/// Cloudflare lets one event wait for six answers at once; the renewals of all groups need one of them.
const MOST_CALLS: usize = 5;

/// The requests of one event on Cloudflare's free plan.
const FREE: &str = "50";

/// What `EDGELECT_SUBREQUESTS` may be.
const REQUESTS: std::ops::RangeInclusive<u64> = 10..=100_000;

/// Refuses groups of one trigger whose jobs would hold all of its connections: a seventh request waits for one of them, and no
/// renewal would leave before the leases are over.
pub(super) fn check_calls(groups: &[&Group]) -> Result<(), ConfigError> {
    let calling: Vec<&&Group> = groups.iter().filter(|group| group.is_set(JOB_URL)).collect();
    let Some(last) = calling.get(MOST_CALLS) else { return Ok(()) };
    let names: Vec<&str> = calling.iter().map(|group| group.name()).collect();
    let rule = format!(
        "the groups {} call a URL on one trigger, each call holds one of the trigger's six connections until its job has \
         answered, and with six of them no lease could be renewed: at most {MOST_CALLS} for each trigger; give groups \
         triggers of their own, such as {CRON}__{}",
        names.join(", "),
        suffix_of(last.name())
    );
    Err(ConfigError::new(last.source(JOB_URL), "(not shown)", rule))
}

/// A group's own `EDGELECT_SUBREQUESTS` is its share; what is left of the common one is shared by the others evenly.
pub(super) fn with_share(
    group: &Group,
    groups: &[&Group],
    env: &Env,
) -> Result<Group, ConfigError> {
    if groups.len() == 1 {
        return Ok(group.clone());
    }
    let set = env.iter().find(|(name, given)| name == SUBREQUESTS && given.is_set());
    let common = set.map_or(Some(FREE), |(_, given)| given.text());
    // Refused where all variables are.
    let limit = common.and_then(digits).filter(|limit| REQUESTS.contains(limit));
    let Some(limit) = limit else { return Ok(group.clone()) };
    let own = groups.iter().filter(|one| one.has_own_share());
    let taken: u64 =
        own.filter_map(|one| digits(&one.get(SUBREQUESTS)?)).fold(0, u64::saturating_add);
    let length = groups.iter().filter(|one| !one.has_own_share()).count() as u64;
    let whole =
        format!("one trigger may make{}", if set.is_some() { "" } else { " (the default)" });
    let left = limit.saturating_sub(taken);
    let share = left.checked_div(length);
    if share.map_or(taken > limit, |share| share < *REQUESTS.start()) {
        let few = format!("{} requests are too few for", share.unwrap_or(0));
        let short = match length {
            0 => {
                format!("the shares of its groups are {taken} requests together, more than {whole}")
            }
            1 => format!("one group has what the others leave of what {whole}, and {few} it"),
            _ => format!("{length} groups share what {whole}, and {few} each"),
        };
        let rule = format!(
            "{short}: give groups triggers of their own (EDGELECT_CRON), or on the paid plan set this to 10000"
        );
        return Err(ConfigError::new(SUBREQUESTS, limit.to_string(), rule));
    }
    let mut group = group.clone();
    if let Some(share) = share.filter(|_| !group.has_own_share()) {
        group.set(SUBREQUESTS, SUBREQUESTS, Given::Text(share.to_string()));
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::tests::{env, refused, text, texts};
    use crate::groups::{LIST, of_path, on_trigger};

    fn run(env: &Env) -> Result<Vec<Group>, ConfigError> {
        on_trigger(env, "* * * * *")
    }

    /// What each group of a trigger may make.
    fn shares(given: &[(&str, &str)], trigger: &str) -> Vec<Option<String>> {
        let groups = on_trigger(&texts(given), trigger).unwrap();
        groups.iter().map(|group| group.get(SUBREQUESTS)).collect()
    }

    #[test]
    fn the_groups_of_one_trigger_share_its_requests_those_of_another_do_not() {
        let every = |given: &[(&str, &str)]| shares(given, "* * * * *");
        let some = |shares: &[&str]| -> Vec<Option<String>> {
            shares.iter().map(|share| Some((*share).to_owned())).collect()
        };
        assert_eq!(every(&[]), [None], "one group has them all");
        assert_eq!(every(&[(LIST, "a,b")]), some(&["25", "25"]));
        assert_eq!(every(&[(LIST, "a,b,c"), (SUBREQUESTS, "10000")]), some(&["3333"; 3]));
        let own = [(LIST, "a,b,c"), ("EDGELECT_SUBREQUESTS__B", "20")];
        assert_eq!(every(&own), some(&["15", "20", "15"]), "one's own is its share");
        let apart = |list: &'static str| {
            let cron = |name: &'static str, cron: &'static str| (name, cron);
            [
                (LIST, list),
                cron("EDGELECT_CRON__A", "0 * * * *"),
                cron("EDGELECT_CRON__B", "*/5 * * * *"),
                cron("EDGELECT_CRON__C", "*/5 * * * *"),
            ]
        };
        assert_eq!(shares(&apart("a,b,c"), "0 * * * *"), [None]);
        assert_eq!(shares(&apart("a,b,c"), "*/5 * * * *"), some(&["25", "25"]));
        let asked = |list, path| {
            let found = of_path(&texts(&apart(list)), Some(path)).unwrap();
            found.expect("it is there").get(SUBREQUESTS)
        };
        assert_eq!(asked("a,b,c", "a.json"), None);
        assert_eq!(asked("a,b,c", "b.json").as_deref(), Some("25"));
        assert_eq!(asked("a,b,c,all", "all.json").as_deref(), Some("16"), "of its fullest trigger");
        for (wrong, told) in
            [("many", "many"), ("", "25"), ("9", "9"), ("100001", "100001"), ("0x20", "0x20")]
        {
            assert_eq!(every(&[(LIST, "a,b"), (SUBREQUESTS, wrong)]), some(&[told; 2]));
        }
    }

    #[test]
    fn more_groups_than_one_trigger_has_requests_for_are_refused_with_what_to_do() {
        let list = (0..16).map(|at| format!("g{at}")).collect::<Vec<_>>().join(",");
        let many = texts(&[(LIST, &list)]);
        for says in [
            "EDGELECT_SUBREQUESTS = 50: 16 groups share what one trigger may make (the default), and 3 requests",
            "on the paid plan set this to 10000",
        ] {
            refused(run(&many), SUBREQUESTS, says);
            refused(of_path(&many, None), SUBREQUESTS, says);
        }
        let (a, b) = ("EDGELECT_SUBREQUESTS__A", "EDGELECT_SUBREQUESTS__B");
        let of = |given: &[(&str, &str)]| run(&texts(&[&[(LIST, "a,b")], given].concat()));
        let left = "50: one group has what the others leave of what one trigger may make (the default), and 0 requests";
        refused(of(&[(a, "10000")]), SUBREQUESTS, left);
        refused(
            of(&[(SUBREQUESTS, "12")]),
            SUBREQUESTS,
            "2 groups share what one trigger may make, and 6",
        );
        let own = [(LIST, "a,b"), (a, "30"), (b, "21")];
        let over = "shares of its groups are 51 requests together, more than one trigger may make (the default)";
        refused(run(&texts(&own)), SUBREQUESTS, over);
        refused(of_path(&texts(&own), Some("b.json")), SUBREQUESTS, "51 requests together");
        assert_eq!(run(&texts(&[(LIST, &list), (SUBREQUESTS, "10000")])).unwrap().len(), 16);
        assert_eq!(of(&[(a, "30"), (b, "20")]).unwrap().len(), 2);
        assert_eq!(of(&[(a, "30"), (b, "21"), (SUBREQUESTS, "51")]).unwrap().len(), 2);
        let apart = of(&[(a, "30"), (b, "21"), ("EDGELECT_CRON__A", "0 * * * *")]);
        assert_eq!(apart.unwrap().len(), 1, "they share no trigger");
    }

    #[test]
    fn more_than_five_groups_that_call_a_url_on_one_trigger_are_refused_no_renewal_could_leave() {
        let with = |more: &[(&str, Given)]| {
            let common = [
                (LIST, text("a,b,c,d,e,f,g")),
                (SUBREQUESTS, text("10000")),
                ("EDGELECT_JOB_URL__A", text("https://hidden")),
            ];
            env(&[&common, more].concat())
        };
        let url = (JOB_URL, text("https://hidden"));
        let says = "EDGELECT_JOB_URL = (not shown): the groups a, b, c, d, e, f, g call a URL";
        let everyone = with(std::slice::from_ref(&url));
        for path in [None, Some("g.json")] {
            refused(of_path(&everyone, path), JOB_URL, says);
        }
        refused(run(&everyone), JOB_URL, "at most 5 for each trigger");
        refused(run(&everyone), JOB_URL, "EDGELECT_CRON__F");
        let own = ["B", "C", "D", "E", "F"].map(|name| format!("EDGELECT_JOB_URL__{name}"));
        let six: Vec<(&str, Given)> =
            own.iter().map(|name| (name.as_str(), text("https://hidden"))).collect();
        refused(
            run(&with(&six)),
            "EDGELECT_JOB_URL__F",
            ": the groups a, b, c, d, e, f call a URL",
        );
        assert_eq!(run(&with(&six[..4])).unwrap().len(), 7, "the others lead, or have a bound job");
        let bound = [url.clone(), ("JOB__F", Given::Service), ("JOB__G", Given::Service)];
        assert_eq!(
            run(&with(&bound)).unwrap().len(),
            7,
            "an own binding takes the place of the URL"
        );
        let hourly = |name| (name, text("0 * * * *"));
        let apart = with(&[url, hourly("EDGELECT_CRON__F"), hourly("EDGELECT_CRON__G")]);
        assert_eq!(run(&apart).unwrap().len(), 5);
        refused(on_trigger(&apart, "0 * * * *"), JOB_URL, says);
        refused(of_path(&apart, Some("a.json")), JOB_URL, says);
    }
}
