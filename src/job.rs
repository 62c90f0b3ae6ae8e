//! The job of the deployed Worker: a service binding or a URL that is called with the slot and the token.
//!
//! One POST with JSON `{ group, slot, term, serverId }` and the header `Edgelect-Token`. Where a secret is set it is signed
//! as Standard Webhooks does it, so that a receiver in any language has a library that checks it
//! (<https://www.standardwebhooks.com>).

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::config::{Config, ConfigError};
use crate::hostname::Hostname;
use crate::json::{self, Object};
use crate::lease::PastSlot;
use crate::request;
use crate::slots::{Schedule, ScheduleSettings};
use crate::text::{first, quoted};
use crate::vars;

/// How long a job may take where nothing else is set and the trigger's requests suffice, in milliseconds.
pub const TIMEOUT_MS: u64 = 120_000;

/// The longest that a job may take, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 840_000;

/// The shortest timeout of a job, in milliseconds.
const MIN_TIMEOUT_MS: u64 = 1_000;

/// A service binding has no address of its own; the receiver sees this one.
const BOUND_URL: &str = "https://job.edgelect.internal/";

/// Base64 with or without padding, as receivers' libraries take it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Cloudflare ends a cron trigger after a quarter of an hour.
const TRIGGER_MS: u64 = 900_000;

/// The requests that a slot needs besides looks and renewals: its claim, its job's call, its closing write.
const ALWAYS: u64 = 3;

/// Room for two troubled writes: each is sent twice more and read back.
const RETRIES: u64 = 6;

/// What a trigger over epochs spends on cleaning: a DELETE for each epoch beyond two, which is the one it made.
const CLEANING: u64 = 2;

/// How many steps so many requests allow over epochs: each is two, a listing beside it.
pub fn steps_of_epochs(requests: u64) -> u64 {
    requests.saturating_sub(CLEANING) / 2
}

/// How many requests so many steps over epochs are.
pub fn requests_of_epochs(steps: u64) -> u64 {
    steps.saturating_mul(2).saturating_add(CLEANING)
}

/// Variables of the schedule and the options of `runScheduled` that they set.
const SCHEDULE_VARS: [(&str, &str); 6] = [
    ("EDGELECT_POLICY", "policy"),
    ("EDGELECT_MISSED", "missed"),
    ("EDGELECT_PERIOD", "period"),
    ("EDGELECT_ATTEMPTS", "attempts"),
    ("EDGELECT_BUDGET", "budget"),
    ("EDGELECT_SUBREQUESTS", "subrequests"),
];

/// Where the job is and how it is called.
#[derive(Clone, PartialEq, Eq)]
pub struct JobTarget {
    /// The URL, or none for the service binding.
    pub url: Option<String>,
    /// The key of the signature.
    pub secret: Option<Vec<u8>>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
}

impl JobTarget {
    /// Reads `EDGELECT_JOB_URL`, `EDGELECT_JOB_SECRET` and `EDGELECT_JOB_TIMEOUT`; none without a URL and a binding.
    ///
    /// # Errors
    /// The variable that can't be used, and why; never the secret. Also a job that one trigger could not wait for, call
    /// and keep the lease for within its requests and its quarter of an hour.
    pub fn from_vars(
        get: impl Fn(&str) -> Option<String>,
        bound: bool,
        config: &Config,
        schedule: &Schedule,
    ) -> Result<Option<Self>, ConfigError> {
        let given = |name: &str| get(name).filter(|text| !text.is_empty());
        let url = given("EDGELECT_JOB_URL");
        let secret = given("EDGELECT_JOB_SECRET");
        if let Some(url) = &url {
            check_url(url)?;
        }
        let secret = secret.as_deref().map(read_secret).transpose()?;
        if url.is_none() && !bound {
            let own = ["EDGELECT_JOB_SECRET", "EDGELECT_JOB_TIMEOUT"];
            let mut set = own.into_iter().chain(SCHEDULE_VARS.map(|(var, _)| var));
            // A tick that leads makes requests too.
            let jobs = |var: &&str| *var != "EDGELECT_SUBREQUESTS" && given(var).is_some();
            if let Some(var) = set.find(jobs) {
                let rule = "is for a job, and there is none: bind a service as JOB, or set EDGELECT_JOB_URL";
                return Err(ConfigError::new(var, "(not shown)", rule));
            }
            return Ok(None);
        }
        let timeout_ms = timeout_ms(given("EDGELECT_JOB_TIMEOUT").as_deref(), config, schedule)?;
        Ok(Some(Self { url, secret, timeout_ms }))
    }

    /// Keeps the requests and the time that the longest job needs out of what further slots may use up: what a slot took
    /// says nothing of the next.
    pub fn reserve(&self, config: &Config, schedule: &mut Schedule) {
        let most = self.timeout_ms / config.frequent_interval_ms + RETRIES;
        schedule.subrequests = schedule.subrequests.map(|all| all.saturating_sub(most));
        schedule.room_ms = self.timeout_ms + 2 * config.attempts_ms();
    }

    /// The same job, with no more time than is left of its trigger after `spent_ms`: an answer that is not waited for is
    /// recorded, an isolate that is ended records nothing.
    pub fn after(&self, spent_ms: u64, config: &Config) -> Self {
        let left_ms = TRIGGER_MS.saturating_sub(spent_ms + config.attempts_ms());
        Self { timeout_ms: self.timeout_ms.min(left_ms.max(1)), ..self.clone() }
    }

    /// The call of a slot's job, signed at `now_ms` if there is a secret.
    pub fn order(&self, call: &Call<'_>, now_ms: u64) -> Order {
        let body = json::of(call);
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("edgelect-token", call.term.to_string()),
        ];
        if let Some(secret) = &self.secret {
            // Unique for each run of each group, so that a receiver may drop what it has had; without a dot, which the
            // signature's text is split at.
            let group = hex::encode(&Sha256::digest(call.group)[..6]);
            let id = format!("slot_{}_{}_{group}", call.slot, call.term);
            let timestamp = (now_ms / 1000).to_string();
            let mut mac =
                Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length is one");
            mac.update([&*id, &*timestamp, &*body].join(".").as_bytes());
            let signature = BASE64.encode(mac.finalize().into_bytes());
            headers.push(("webhook-id", id));
            headers.push(("webhook-timestamp", timestamp));
            headers.push(("webhook-signature", format!("v1,{signature}")));
        }
        let url = self.url.clone().unwrap_or_else(|| BOUND_URL.to_owned());
        Order { url, headers, body }
    }
}

/// What a job is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call<'a> {
    /// The group's `lockfilePath`.
    pub group: &'a str,
    /// The slot, in milliseconds since the Unix epoch.
    pub slot: u64,
    /// The fencing token.
    pub term: u64,
    /// The member that calls.
    pub server_id: &'a str,
}

/// One POST, as it is to be sent.
pub struct Order {
    /// Where to; a service binding takes any.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: String,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// An answer with this status.
    Status(u16),
    /// A job in the same program has ended well, or not.
    Own(bool),
    /// No answer came in time.
    Late,
    /// No answer will come.
    Never,
}

/// How long a job may take: what the variable says, or the default or what fits of it.
fn timeout_ms(
    given: Option<&str>,
    config: &Config,
    schedule: &Schedule,
) -> Result<u64, ConfigError> {
    let interval_ms = config.frequent_interval_ms;
    let heartbeats = config.peers.heartbeat_ms.map_or(0, |ms| schedule.budget_ms / ms);
    let looks = schedule.budget_ms / interval_ms + 1 + heartbeats;
    let besides = looks + ALWAYS + RETRIES;
    let most = schedule.subrequests.unwrap_or(u64::MAX);
    let by_requests_ms = most.saturating_sub(besides).saturating_mul(interval_ms);
    let by_time_ms = TRIGGER_MS.saturating_sub(schedule.budget_ms + 2 * config.attempts_ms());
    let longest_ms = by_requests_ms.min(by_time_ms).min(MAX_TIMEOUT_MS);
    let (longest, each) = (longest_ms.to_string(), interval_ms.to_string());
    if longest_ms < MIN_TIMEOUT_MS && by_time_ms >= MIN_TIMEOUT_MS {
        let rule = format!(
            "a trigger of this group looks at the lease and sends heartbeats up to {looks} times in its budget and \
             needs 9 requests for claim, call, closing write and retries, which leaves none for \
             renewals; lower EDGELECT_BUDGET, give groups triggers of their own \
             (EDGELECT_CRON), or on the paid plan set this to 10000"
        );
        return Err(ConfigError::new("EDGELECT_SUBREQUESTS", most.to_string(), &rule));
    }
    if longest_ms < MIN_TIMEOUT_MS {
        let rule = "leaves a job no time within the 15 minutes of a cron trigger";
        return Err(ConfigError::new("EDGELECT_BUDGET", schedule.budget_ms.to_string(), rule));
    }
    let Some(text) = given else { return Ok(TIMEOUT_MS.min(longest_ms)) };
    let refuse =
        |rule: &str| Err(ConfigError::new("EDGELECT_JOB_TIMEOUT", quoted(first(text, 60)), rule));
    let ms = vars::digits(text).filter(|ms| (MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS).contains(ms));
    match ms {
        None => refuse("must be a whole number of milliseconds from 1000 to 840000"),
        Some(ms) if ms <= longest_ms => Ok(ms),
        Some(_) if by_time_ms <= by_requests_ms => refuse(&format!(
            "must be at most {longest}: EDGELECT_BUDGET, the job, its claim and its closing \
             write end within the 15 minutes of a cron trigger"
        )),
        Some(_) => refuse(&format!(
            "must be at most {longest}: a trigger of this group may make {most} requests \
             (EDGELECT_SUBREQUESTS), which are {looks} looks and heartbeats in EDGELECT_BUDGET, a renewal each \
             {each} ms of the job (EDGELECT_FREQUENT_INTERVAL), and 9 for claim, call, closing \
             write and retries; on the paid plan set EDGELECT_SUBREQUESTS to 10000"
        )),
    }
}

/// Reads the schedule's settings.
///
/// # Errors
/// The variable whose text is no value of its option, by the variable's name.
pub fn schedule(
    get: impl Fn(&str) -> Option<String>,
    slot_ms: Option<u64>,
) -> Result<ScheduleSettings, ConfigError> {
    let mut options = Object::new();
    for (var, option) in SCHEDULE_VARS {
        let Some(text) = get(var).filter(|text| !text.is_empty()) else { continue };
        let json = match option {
            "policy" | "missed" => json::of(&text),
            _ => vars::whole(var, &text)?,
        };
        options.set(option, json);
    }
    let mut settings = ScheduleSettings::from_json(&options).map_err(by_variable)?;
    settings.slot_ms = slot_ms;
    Ok(settings)
}

/// Says a schedule's error by the name of its variable.
pub fn by_variable(error: ConfigError) -> ConfigError {
    match SCHEDULE_VARS.iter().find(|(_, option)| *option == error.field) {
        Some((var, _)) => ConfigError { field: (*var).to_owned(), ..error },
        None => error,
    }
}

/// What an answer means for the slot: the word that the record keeps, as `Err` if the job has not ended well.
///
/// Only a 2xx is success. A timeout or a connection that broke leaves open what the job has done; it counts as a failure,
/// which at most once means not again, and at least once means again.
pub fn judge(answered: Answered) -> Result<String, String> {
    match answered {
        Answered::Own(true) => Ok("ok".to_owned()),
        Answered::Own(false) => Err("failed".to_owned()),
        Answered::Status(status @ 200..=299) => Ok(format!("ok {status}")),
        Answered::Status(status @ 300..=399) => Err(format!("failed {status} redirect")),
        Answered::Status(status) => Err(format!("failed {status}")),
        Answered::Late => Err("unknown: no answer in time".to_owned()),
        Answered::Never => Err("unknown: no answer".to_owned()),
    }
}

/// What the log says of the slots of others: who claimed the one that a `taken` trigger was shown, and whether the record
/// says how that ended; how the slot before an own one ended. Names come out of a bucket.
pub fn past_fields(taken: Option<&PastSlot>, previous: Option<&PastSlot>) -> Vec<String> {
    let by = |past: &PastSlot| first(past.by.as_deref().unwrap_or("nobody known"), 60).to_owned();
    let taken = taken
        .map(|past| [format!("by={}", quoted(&by(past))), format!("finished={}", past.finished())]);
    let previous = previous.map(|past| {
        let told = format!("{} {} by {}", past.slot, past.outcome, by(past));
        format!("previous={}", quoted(&told))
    });
    taken.into_iter().flatten().chain(previous).collect()
}

fn check_url(url: &str) -> Result<(), ConfigError> {
    let refuse = |rule: &str| {
        // User, path and query may be secrets.
        Err(ConfigError::new("EDGELECT_JOB_URL", "(not shown)", rule))
    };
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let uri = request::origin(url).filter(|_| plain && !url.contains(['#', '\\']));
    let Some((scheme, authority)) =
        uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?.as_str())))
    else {
        return refuse(
            "must be a URL such as https://jobs.example.com/run: ASCII (a host of other letters as xn--…), without \
             spaces, `#` and backslashes",
        );
    };
    if authority.contains('@') {
        return refuse("must have no user and password; EDGELECT_JOB_SECRET signs the call");
    }
    let Some((host, _)) = Hostname::parse_with_port(authority) else {
        return refuse("must name a host, such as https://jobs.example.com/run");
    };
    match &*scheme.to_ascii_lowercase() {
        "https" => Ok(()),
        "http" if host.is_loopback() => Ok(()),
        _ => refuse("must begin with https://; http:// is for loopback addresses only"),
    }
}

fn read_secret(text: &str) -> Result<Vec<u8>, ConfigError> {
    let bytes = BASE64.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok();
    bytes.filter(|bytes| (24..=64).contains(&bytes.len())).ok_or_else(|| {
        let rule = "must be Base64 of 24 to 64 random bytes, such as `openssl rand -base64 32` prints, after whsec_ or \
                    alone";
        ConfigError::new("EDGELECT_JOB_SECRET", "(not shown)", rule)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostClock, Settings};

    #[test]
    fn the_log_quotes_the_names_that_a_record_tells() {
        let past = |outcome: &str, by: Option<&str>| PastSlot {
            slot: 60_000,
            outcome: outcome.to_owned(),
            by: by.map(str::to_owned),
        };
        let told = past_fields(None, Some(&past("died", Some("a"))));
        assert_eq!(told, ["previous=\"60000 died by a\""]);
        let long = "\u{202e}x y=\"1\"\n".repeat(20);
        let told = past_fields(Some(&past("open", Some(&long))), None).join(" ");
        let plain = told.chars().all(|c| !c.is_control() && c != '\u{202e}');
        assert!(plain && told.ends_with("\" finished=false") && told.len() < 300, "{told}");
        let told = past_fields(Some(&past("ok", None)), Some(&past("ok", None))).join(" ");
        let nobody = "by=\"nobody known\" finished=true previous=\"60000 ok by nobody known\"";
        assert_eq!(told, nobody);
    }

    fn of(vars: &[(&str, &str)], bound: bool) -> Result<Option<JobTarget>, ConfigError> {
        let get = |name: &str| {
            vars.iter().find(|(var, _)| *var == name).map(|(_, text)| (*text).to_owned())
        };
        let config = config();
        let schedule = Schedule::new(&schedule(get, Some(1))?, &config).map_err(by_variable)?;
        JobTarget::from_vars(get, bound, &config, &schedule)
    }

    /// The deployed Worker's defaults.
    fn config() -> Config {
        let settings = Settings {
            lockfile_path: Some("leader.json".to_owned()),
            clock: HostClock::One,
            sustain_ms: Some(63_000),
            ..Settings::default()
        };
        Config::new(&settings).unwrap()
    }

    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    #[test]
    fn a_job_is_where_a_url_or_a_binding_says_and_nowhere_without() {
        assert!(of(&[], false).unwrap().is_none());
        assert!(of(&[("EDGELECT_JOB_URL", "")], false).unwrap().is_none());
        assert!(of(&[], true).unwrap().unwrap().url.is_none());
        for url in [
            "https://jobs.example.com",
            "https://jobs.example.com:8443/run?a=b",
            "http://127.0.0.1:8080/run",
            "http://localhost/run",
            "http://[::1]:80/",
        ] {
            assert_eq!(of(&[("EDGELECT_JOB_URL", url)], true).unwrap().unwrap().url.unwrap(), url);
        }
    }

    #[test]
    fn a_url_that_must_not_be_called_is_refused_and_its_secrets_are_not_shown() {
        for url in [
            "http://jobs.example.com/run?key=hidden",
            "https://user:hidden@jobs.example.com/",
            "ftp://jobs.example.com/",
            "jobs.example.com/hidden",
            "https://",
            "https:///run",
            "https://jobs.example.com:0/",
            "https://jobs.example.com/#hidden",
            "https://jobs example.com/",
            "https://jobs.example.com\\@hidden/",
            "http://127.1/",
            "http://localhost.evil.example/",
            "javascript://localhost/hidden",
        ] {
            let error = of(&[("EDGELECT_JOB_URL", url)], false).err().expect(url);
            assert_eq!(error.field, "EDGELECT_JOB_URL", "{url}");
            assert!(!error.message().contains("hidden"), "{}", error.message());
        }
    }

    #[test]
    fn a_secret_or_a_timeout_that_is_none_is_refused_by_name() {
        assert!(of(&[("EDGELECT_JOB_SECRET", SECRET)], true).unwrap().is_some());
        for text in
            ["short", "whsec_", "not Base64 at all, but long enough to be", "whsec_C2FVsBQ=="]
        {
            let error = of(&[("EDGELECT_JOB_SECRET", text)], true).err().expect(text);
            assert_eq!((&*error.field, &*error.value), ("EDGELECT_JOB_SECRET", "(not shown)"));
        }
        for text in ["0", "999", "840001", "1e3", "-1", "soon", "18446744073709551616"] {
            let error = of(&[("EDGELECT_JOB_TIMEOUT", text)], true).err().expect(text);
            assert_eq!(error.field, "EDGELECT_JOB_TIMEOUT");
        }
    }

    #[test]
    fn a_job_that_its_trigger_could_not_keep_the_lease_for_is_refused_and_the_default_is_what_fits()
    {
        let timeout =
            |vars: &[(&str, &str)]| of(vars, true).map(|target| target.unwrap().timeout_ms);
        let (ms, most) = ("EDGELECT_JOB_TIMEOUT", "EDGELECT_SUBREQUESTS");
        assert_eq!(timeout(&[]), Ok(TIMEOUT_MS));
        // 50 - 13 looks - 9 besides leave 28 renewals; 25 leave 3, and a budget of half the time 10.
        assert_eq!(timeout(&[(ms, "140000")]), Ok(140_000));
        assert_eq!(timeout(&[(most, "25")]), Ok(15_000));
        assert_eq!(timeout(&[(most, "25"), ("EDGELECT_BUDGET", "27000")]), Ok(50_000));
        assert_eq!(timeout(&[(most, "10000"), (ms, "820400")]), Ok(820_400));
        for (vars, field, rule) in [
            (&[(ms, "140001")][..], ms, "at most 140000: a trigger of this group may make 50"),
            (&[(ms, "840000")], ms, "at most 140000"),
            (&[(most, "25"), (ms, "15001")], ms, "at most 15000"),
            (&[(most, "10000"), (ms, "820401")], ms, "at most 820400: EDGELECT_BUDGET, the job"),
            (&[(most, "21")], most, "which leaves none for renewals"),
            (&[(most, "10000"), ("EDGELECT_BUDGET", "890000")], "EDGELECT_BUDGET", "no time"),
        ] {
            let error = timeout(vars).expect_err(rule);
            assert_eq!(error.field, field, "{rule}");
            assert!(error.rule.contains(rule), "{}", error.message());
        }
    }

    #[test]
    fn a_further_slot_leaves_what_the_longest_job_needs_and_ends_with_its_trigger() {
        let config = config();
        let mut schedule = Schedule::new(&schedule(|_| None, Some(1)).unwrap(), &config).unwrap();
        let target = of(&[], true).unwrap().unwrap();
        target.reserve(&config, &mut schedule);
        assert_eq!(schedule.subrequests, Some(50 - 24 - RETRIES));
        let room_ms = TIMEOUT_MS + 2 * config.attempts_ms();
        let full = |spent_ms| schedule.is_full(8, spent_ms, 8, 1);
        assert_eq!([full(TRIGGER_MS - room_ms), full(TRIGGER_MS - room_ms + 1)], [false, true]);
        assert_eq!(target.after(0, &config).timeout_ms, TIMEOUT_MS);
        assert_eq!(target.after(800_000, &config).timeout_ms, 100_000 - config.attempts_ms());
        assert_eq!(target.after(2_000_000, &config).timeout_ms, 1);
    }

    #[test]
    fn the_order_names_the_slot_the_term_and_who_asks_and_is_signed_where_there_is_a_secret() {
        let target = of(&[("EDGELECT_JOB_SECRET", SECRET)], true).unwrap().unwrap();
        let group = "jobs/\"a\".json";
        let call = Call { group, slot: 1_795_244_280_000, term: 7, server_id: "me" };
        let order = target.order(&call, 1_795_244_281_999);
        let body: serde_json::Value = serde_json::from_str(&order.body).unwrap();
        let expected = serde_json::json!({
            "group": group, "slot": 1_795_244_280_000_u64, "term": 7, "serverId": "me"
        });
        assert_eq!((body, &*order.url), (expected, BOUND_URL));
        let headers = [
            ("content-type", "application/json"),
            ("edgelect-token", "7"),
            ("webhook-id", "slot_1795244280000_7_b118baba74c8"),
            ("webhook-timestamp", "1795244281"),
            // By Python's hmac.
            ("webhook-signature", "v1,/dCS/1hrYwkcQsDa8HWVZKlFAIHGW1pariGgLJMeMs0="),
        ];
        assert_eq!(order.headers, headers.map(|(name, value)| (name, value.to_owned())));
        let unsigned = of(&[("EDGELECT_JOB_URL", "https://a/b|c")], true).unwrap().unwrap();
        let order = unsigned.order(&call, 0);
        assert_eq!((order.headers.len(), &*order.url), (2, "https://a/b|c"));
    }

    #[test]
    fn only_a_2xx_is_success() {
        assert_eq!(judge(Answered::Status(204)), Ok("ok 204".to_owned()));
        assert_eq!(judge(Answered::Own(true)), Ok("ok".to_owned()));
        for (answered, word) in [
            (Answered::Status(500), "failed 500"),
            (Answered::Status(302), "failed 302 redirect"),
            (Answered::Status(199), "failed 199"),
            (Answered::Own(false), "failed"),
            (Answered::Never, "unknown: no answer"),
            (Answered::Late, "unknown: no answer in time"),
        ] {
            assert_eq!(judge(answered), Err(word.to_owned()));
        }
    }

    #[test]
    fn a_schedule_comes_from_variables_and_its_errors_name_them() {
        let read = |var: &'static str, text: &'static str| {
            schedule(move |name| (name == var).then(|| text.to_owned()), Some(1))
        };
        assert_eq!(read("EDGELECT_PERIOD", "60000").unwrap().period_ms, Some(60_000));
        for (var, text) in [
            ("EDGELECT_POLICY", "exactlyOnce"),
            ("EDGELECT_MISSED", "some"),
            ("EDGELECT_PERIOD", "1m"),
            ("EDGELECT_ATTEMPTS", "-3"),
            ("EDGELECT_BUDGET", "1.5"),
        ] {
            assert_eq!(read(var, text).unwrap_err().field, var);
        }
    }
}
