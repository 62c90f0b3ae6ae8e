//! What a cron trigger's text says of the time between two firings, and which settings do not fit that.
//!
//! Numbers, `*`, ranges, steps and lists are read, as Cloudflare has them; whatever else is a cron text whose times nobody
//! here knows, and then nothing is checked.

use crate::config::{Config, ConfigError};
use crate::slots::{Missed, Policy, Schedule, ScheduleSettings};
use crate::text::{first, quoted};

const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: u64 = 1_440;

/// From one firing to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The least, in milliseconds.
    pub least_ms: u64,
    /// Whether it is always the same.
    pub even: bool,
}

/// The steps of a cron text; `None` where its minutes or hours are not understood.
pub fn steps(cron: &str) -> Option<Steps> {
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    let [minutes, hours, days @ ..] = &*fields else { return None };
    let (minutes, hours) = (field(minutes, 60)?, field(hours, 24)?);
    let daily = days.len() == 3 && days.iter().all(|day| *day == "*");
    let fires = |at: &u64| hours >> (at / 60) & 1 == 1 && minutes >> (at % 60) & 1 == 1;
    let times: Vec<u64> = (0..DAY_MINUTES).filter(fires).collect();
    let overnight = times.first()? + DAY_MINUTES - times.last()?;
    let gaps = || times.windows(2).map(|pair| pair[1] - pair[0]);
    if let (["*", "*", day], 1) = (days, times.len())
        && is_weekday(day)
    {
        return Some(Steps { least_ms: 7 * DAY_MINUTES * MINUTE_MS, even: true });
    }
    // Whether the next day has a firing is known only where all have one, or where one a day is the most.
    let least = gaps().chain((daily || times.len() == 1).then_some(overnight)).min()?;
    let even = daily && gaps().chain([overnight]).all(|gap| gap == least);
    // Two days in a row may both have firings, or not.
    (least <= overnight).then_some(Steps { least_ms: least * MINUTE_MS, even })
}

/// Whether it is one day of every week, whichever: a digit or a name; "MON#2", "5L" and lists are none.
fn is_weekday(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    matches!(text.as_bytes(), [b'0'..=b'7']) || (letters && text.len() == 3)
}

/// The values of one field below `end`, as bits.
fn field(text: &str, end: u64) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number < end);
    text.split(',').try_fold(0, |bits, part| {
        let (range, step) = part.split_once('/').map_or((part, None), |(all, by)| (all, Some(by)));
        let step = step.map_or(Some(1), |by| by.parse::<usize>().ok().filter(|by| *by > 0))?;
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (0, end - 1),
            (_, Some((from, to))) => (number(from)?, number(to)?),
            (one, None) if part == one => (number(one)?, number(one)?),
            _ => return None,
        };
        Some((from..=to).step_by(step).fold(bits, |bits, at| bits | 1 << at))
    })
}

/// A cron text with one blank between two fields.
pub fn plain(cron: &str) -> String {
    cron.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses a text that is no cron trigger: it would match none, and its group never run.
///
/// # Errors
/// `EDGELECT_CRON`, and the rule.
pub fn check_text(cron: &str) -> Result<(), ConfigError> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"*/,-#?".contains(&byte);
    let fields = cron.split_ascii_whitespace().filter(|field| field.bytes().all(known)).count();
    if fields == 5 && cron.split_ascii_whitespace().count() == 5 {
        return Ok(());
    }
    let rule = "must be one of the triggers in `crons` of wrangler.toml, such as \"*/5 * * * *\": five fields with \
                spaces between";
    Err(ConfigError::new("EDGELECT_CRON", quoted(first(cron, 60)), rule))
}

/// The schedule of what this cron triggers. Where slots that were missed are made up for, or none may be lost, and nobody names
/// their period, it is the cron's own.
///
/// # Errors
/// The variable, and the rule: also a lease that outlasts the trigger's step, and a period of slots that the trigger does not have.
pub fn schedule(
    cron: Option<&str>,
    settings: &ScheduleSettings,
    config: &Config,
) -> Result<Schedule, ConfigError> {
    let steps = cron.and_then(|cron| Some((cron, steps(cron)?)));
    if let Some((cron, steps)) = steps {
        check_lease(cron, steps, config)?;
    }
    let makes_up = settings.missed.is_some_and(|missed| missed != Missed::Skip);
    let counts = makes_up || settings.policy.unwrap_or_default() != Policy::AtMostOnce;
    let own = steps.filter(|(_, steps)| counts && steps.even).map(|(_, steps)| steps.least_ms);
    let period_ms = settings.period_ms.or(own);
    if let (true, None, Some((cron, _))) = (makes_up, period_ms, steps) {
        let rule = format!(
            "the trigger {} has no one period, so that nobody knows which slots were missed; set this to skip",
            quoted(first(cron, 60)),
        );
        let value = settings.missed.map_or("", Missed::name);
        return Err(ConfigError::new("EDGELECT_MISSED", quoted(value), &rule));
    }
    // Who only answers for the group knows no cron, and runs no slot.
    let missed = settings.missed.filter(|_| period_ms.is_some() || cron.is_some());
    let settings = ScheduleSettings { period_ms, missed, ..settings.clone() };
    let schedule = Schedule::new(&settings, config)?;
    if let Some((cron, steps)) = steps {
        check_period(cron, steps, &schedule)?;
    }
    Ok(schedule)
}

fn check_lease(cron: &str, steps: Steps, config: &Config) -> Result<(), ConfigError> {
    let (shown, least_ms) = (quoted(first(cron, 60)), steps.least_ms);
    if config.leader_timeout_ms > least_ms {
        let rule = format!(
            "the trigger {shown} comes every {least_ms} ms, and a cron finer than the lease could \
             not take over what died before the next one is due; lower this or the frequency"
        );
        let value = config.leader_timeout_ms.to_string();
        return Err(ConfigError::new("EDGELECT_LEADER_TIMEOUT", value, &rule));
    }
    Ok(())
}

fn check_period(cron: &str, steps: Steps, schedule: &Schedule) -> Result<(), ConfigError> {
    let (shown, Steps { least_ms, even }) = (quoted(first(cron, 60)), steps);
    let refuse =
        |ms: u64, rule: &str| Err(ConfigError::new("EDGELECT_PERIOD", ms.to_string(), rule));
    let Some(period_ms) = schedule.period_ms else { return Ok(()) };
    // By a longer one a slot that nobody claimed would not be missed.
    let longer = period_ms > least_ms && schedule.missed != Missed::Skip;
    if period_ms < least_ms || (even && (longer || !period_ms.is_multiple_of(least_ms))) {
        let rule = format!(
            "the trigger {shown} has a slot every {least_ms} ms: set that, or slots that were missed \
             would be counted wrongly; with several triggers set EDGELECT_CRON to the one that is \
             meant"
        );
        return refuse(period_ms, &rule);
    }
    if !even && schedule.missed != Missed::Skip {
        let rule = format!(
            "the trigger {shown} has no one period, so that slots which nobody scheduled would \
             be made up for; leave this variable out, or set EDGELECT_MISSED to skip"
        );
        return refuse(period_ms, &rule);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostClock, Settings};

    #[test]
    fn the_steps_of_a_cron_are_those_between_its_firings() {
        const HOUR: u64 = 60;
        for (cron, minutes, even) in [
            ("* * * * *", 1, true),
            ("*/5 * * * *", 5, true),
            ("0-59/15 * * * *", 15, true),
            ("*/25 * * * *", 10, false),
            ("0,59 * * * *", 1, false),
            ("0,59 5 * * *", 59, false),
            ("10,40 * * * *", 30, true),
            ("0 * * * *", HOUR, true),
            ("7 */6 * * *", 6 * HOUR, true),
            ("0 9-17 * * *", HOUR, false),
            ("30 4 * * *", 24 * HOUR, true),
            ("30 4 * * 1-5", 24 * HOUR, false),
            ("0 0 1 * MON", 24 * HOUR, false),
            ("0 3 * * MON", 7 * 24 * HOUR, true),
            ("0 3 * * 1", 7 * 24 * HOUR, true),
            ("0 3,9 * * MON", 6 * HOUR, false),
            ("0 3 * * MON,THU", 24 * HOUR, false),
            ("0 3 * * 5L", 24 * HOUR, false),
            ("0 3 * * 2#1", 24 * HOUR, false),
            ("0 3 * 6 MON", 24 * HOUR, false),
        ] {
            assert_eq!(steps(cron), Some(Steps { least_ms: minutes * MINUTE_MS, even }), "{cron}");
        }
        for cron in [
            "",
            "hourly",
            "*",
            "60 * * * *",
            "*/0 * * * *",
            "5/10 * * * *",
            "a * * * *",
            "- * * * *",
            "5-1 * * * *",
            "1,,2 * * * *",
            "* 24 * * *",
            "*/99999999999999999999 * * * *",
            // Two of these days may follow one another.
            "59,0 23,0 1 * *",
            "0 0,23 * * MON-FRI",
        ] {
            assert_eq!(steps(cron), None, "{cron}");
        }
    }

    fn config(lease_ms: u64) -> Config {
        let settings = Settings {
            lockfile_path: Some("leader.json".to_owned()),
            clock: HostClock::One,
            leader_timeout_ms: Some(lease_ms),
            sustain_ms: Some(600_000),
            ..Settings::default()
        };
        Config::new(&settings).unwrap()
    }

    fn of(
        cron: &str,
        lease_ms: u64,
        settings: &ScheduleSettings,
    ) -> Result<(Option<u64>, Missed), String> {
        let config = config(lease_ms);
        let settings = ScheduleSettings { slot_ms: Some(1), ..settings.clone() };
        let schedule = schedule(Some(cron), &settings, &config);
        schedule.map_err(|error| error.message()).map(|made| (made.period_ms, made.missed))
    }

    #[test]
    fn a_cron_names_the_period_where_missed_slots_count_and_nobody_does() {
        use Missed::{All, Latest, Skip};
        use Policy::{AtLeastOnce, AtMostOnce};
        const OWN: Option<u64> = Some(300_000);
        for (cron, policy, missed, period_ms, made) in [
            ("*/5 * * * *", AtLeastOnce, None, None, (OWN, All)),
            ("*/5 * * * *", AtLeastOnce, Some(All), None, (OWN, All)),
            ("*/5 * * * *", AtLeastOnce, Some(Latest), None, (OWN, Latest)),
            ("*/5 * * * *", AtLeastOnce, Some(Skip), None, (OWN, Skip)),
            ("*/5 * * * *", AtMostOnce, Some(Latest), None, (OWN, Latest)),
            ("*/5 * * * *", AtMostOnce, Some(Skip), None, (None, Skip)),
            ("*/5 * * * *", AtMostOnce, None, None, (None, Skip)),
            ("*/5 * * * *", AtLeastOnce, Some(Skip), Some(600_000), (Some(600_000), Skip)),
            ("0 9-17 * * *", AtLeastOnce, None, None, (None, Skip)),
        ] {
            let policy = Some(policy);
            let settings =
                ScheduleSettings { policy, missed, period_ms, ..ScheduleSettings::default() };
            assert_eq!(of(cron, 15_000, &settings), Ok(made), "{cron} {policy:?} {missed:?}");
        }
        let settings = ScheduleSettings { missed: Some(Latest), ..ScheduleSettings::default() };
        let refused = of("0 9-17 * * *", 15_000, &settings).unwrap_err();
        assert!(refused.starts_with("EDGELECT_MISSED = ") && refused.contains("skip"), "{refused}");
        let slot_ms = Some(1);
        assert!(schedule(None, &ScheduleSettings { slot_ms, ..settings }, &config(15_000)).is_ok());
    }

    #[test]
    fn a_lease_longer_than_the_step_is_refused_and_so_is_a_period_that_makes_slots_up() {
        use Policy::{AtLeastOnce, AtMostOnce};
        const LEASE: &str = "EDGELECT_LEADER_TIMEOUT = ";
        const PERIOD: &str = "EDGELECT_PERIOD = ";
        for (cron, lease_ms, period_ms, policy, refused) in [
            ("* * * * *", 60_000, None, AtMostOnce, None),
            ("* * * * *", 60_001, None, AtMostOnce, Some(LEASE)),
            ("* * * * *", 120_000, Some(120_000), AtLeastOnce, Some(LEASE)),
            ("*/2 * * * *", 120_000, Some(120_000), AtLeastOnce, None),
            ("hourly at five", 120_000, Some(120_000), AtLeastOnce, None),
            ("0 * * * *", 15_000, Some(60_000), AtLeastOnce, Some(PERIOD)),
            ("0 * * * *", 15_000, Some(60_000), AtMostOnce, Some(PERIOD)),
            ("0 * * * *", 15_000, Some(3_600_000), AtLeastOnce, None),
            ("0 * * * *", 15_000, Some(5_400_000), AtLeastOnce, Some(PERIOD)),
            ("0 * * * *", 15_000, Some(7_200_000), AtLeastOnce, Some(PERIOD)),
            ("0 * * * *", 15_000, Some(7_200_000), AtMostOnce, None),
            ("0 9-17 * * *", 15_000, Some(3_600_000), AtLeastOnce, Some(PERIOD)),
            ("0 9-17 * * *", 15_000, Some(3_600_000), AtMostOnce, None),
            ("0 3 * * MON", 15_000, Some(604_800_000), AtLeastOnce, None),
            ("0 3 * * MON", 15_000, Some(86_400_000), AtLeastOnce, Some(PERIOD)),
        ] {
            let policy = Some(policy);
            let settings = ScheduleSettings { policy, period_ms, ..ScheduleSettings::default() };
            let found = of(cron, lease_ms, &settings);
            match refused {
                None => assert!(found.is_ok(), "{cron} {period_ms:?}: {found:?}"),
                Some(variable) => {
                    let message = found.expect_err(cron);
                    assert!(message.starts_with(variable) && message.contains(cron), "{message}");
                }
            }
        }
    }

    #[test]
    fn a_text_that_is_no_cron_is_refused() {
        for cron in ["* * * * *", " 0  9 1 * MON-FRI ", "0 0 LW * *", "*/5 1,2 * * 2#1"] {
            assert_eq!(check_text(cron), Ok(()), "{cron}");
        }
        for cron in ["hourly", "0 * * *", "0 0 * * * *", "@daily", "* * * * \u{e9}", "5"] {
            let error = check_text(cron).expect_err(cron);
            assert_eq!(error.field, "EDGELECT_CRON");
        }
    }
}
