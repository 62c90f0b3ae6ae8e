//! The groups of one Worker: what each of them sees of the variables and bindings.
//!
//! `EDGELECT_GROUPS` names them. A variable is one group's own by two underscores and the group's name in capitals:
//! `EDGELECT_SUSTAIN__REPORTS`.

mod share;

use self::share::{check_calls, with_share};
use crate::config::ConfigError;
use crate::cron;
use crate::vars::{Given, JOB, R2};

/// What an `env` has that is of this crate, each with its name.
pub type Env = [(String, Given)];

/// Whether a name in an `env` is of this crate.
pub fn is_ours(name: &str) -> bool {
    name == JOB || split(name).is_some() || BEGINS.iter().any(|begin| name.starts_with(begin))
}

/// How the names of variables begin.
const BEGINS: [&str; 2] = ["EDGELECT_", "AWS_"];

const MOST: usize = 16;
const LIST: &str = "EDGELECT_GROUPS";
const PATH: &str = "EDGELECT_LOCKFILE_PATH";
const SUBREQUESTS: &str = "EDGELECT_SUBREQUESTS";
const JOB_URL: &str = "EDGELECT_JOB_URL";
const CRON: &str = "EDGELECT_CRON";

/// What names a store or a job besides the binding: a group's own binding takes its place.
const BESIDE: [(&str, &[&str]); 2] = [
    (
        R2,
        &[
            "EDGELECT_STORE",
            "EDGELECT_TABLE",
            "EDGELECT_HOSTED_ZONE_ID",
            "EDGELECT_RECORD_PREFIX",
            "EDGELECT_DOMAIN_NAME",
            "EDGELECT_ENDPOINT",
            "EDGELECT_BUCKET",
            "AWS_ENDPOINT_URL_S3",
            "AWS_ENDPOINT_URL",
        ],
    ),
    (JOB, &[JOB_URL]),
];

/// One group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name in `EDGELECT_GROUPS`; none where that is not set.
    pub name: Option<String>,
    variables: Vec<Variable>,
}

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    /// The name under which it was set.
    source: String,
    given: Given,
}

impl Group {
    /// What it has by this name.
    pub fn given(&self, variable: &str) -> Option<&Given> {
        self.variable(variable).map(|variable| &variable.given)
    }

    /// The text of one of its variables.
    pub fn get(&self, variable: &str) -> Option<String> {
        self.given(variable)?.text().map(str::to_owned)
    }

    /// All that it has.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Given)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), &variable.given))
    }

    /// The name under which one of its variables was set.
    pub fn source<'a>(&'a self, variable: &'a str) -> &'a str {
        self.variable(variable).map_or(variable, |variable| &variable.source)
    }

    /// An error by the name under which its variable was set.
    pub fn by_source(&self, error: ConfigError) -> ConfigError {
        ConfigError { field: self.source(&error.field).to_owned(), ..error }
    }

    fn is_set(&self, variable: &str) -> bool {
        self.given(variable).is_some_and(Given::is_set)
    }

    fn shown(&self, variable: &str) -> String {
        self.given(variable).map_or_else(|| "(not set)".to_owned(), Given::shown)
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    fn set(&mut self, name: &str, source: &str, given: Given) {
        self.variables.retain(|variable| variable.name != name);
        let (name, source) = (name.to_owned(), source.to_owned());
        self.variables.push(Variable { name, source, given });
    }

    /// Whether it runs on a trigger. A text that is no cron is for all triggers: so it is refused by name, and not for ever
    /// without a word.
    fn is_for(&self, trigger: Option<&str>) -> bool {
        match self.cron() {
            Some(cron) => trigger.map(cron::plain) == Some(cron),
            None => true,
        }
    }

    fn cron(&self) -> Option<String> {
        let text = self.get(CRON).filter(|text| cron::check_text(text).is_ok())?;
        Some(cron::plain(&text))
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn has_own_share(&self) -> bool {
        self.source(SUBREQUESTS) != SUBREQUESTS
    }
}

/// The groups that run on a trigger, each with its share of the requests that the trigger may make.
///
/// # Errors
/// The variable that is wrong, as it was set.
pub fn on_trigger(env: &Env, trigger: &str) -> Result<Vec<Group>, ConfigError> {
    let groups: Vec<Group> =
        all(env)?.into_iter().filter(|group| group.is_for(Some(trigger))).collect();
    let refs: Vec<&Group> = groups.iter().collect();
    check_calls(&refs)?;
    refs.iter().map(|group| with_share(group, &refs, env)).collect()
}

/// The group of a lockfile path, without a path the first one, with the share that it has on its fullest trigger.
///
/// # Errors
/// The variable that is wrong, as it was set.
pub fn of_path(env: &Env, path: Option<&str>) -> Result<Option<Group>, ConfigError> {
    let groups = all(env)?;
    let is_it = |group: &&Group| path.is_none_or(|path| group.get(PATH).as_deref() == Some(path));
    let Some(group) = groups.iter().find(is_it) else { return Ok(None) };
    let mut fullest = vec![group];
    for trigger in groups.iter().map(Group::cron).chain([None]) {
        if !group.is_for(trigger.as_deref()) {
            continue;
        }
        let there: Vec<&Group> =
            groups.iter().filter(|one| one.is_for(trigger.as_deref())).collect();
        check_calls(&there)?;
        if there.len() > fullest.len() {
            fullest = there;
        }
    }
    with_share(group, &fullest, env).map(Some)
}

/// Each group as [`of_path`] gives it.
///
/// # Errors
/// The variable that is wrong, as it was set.
pub fn each(env: &Env) -> Result<Vec<Group>, ConfigError> {
    let found = all(env)?.into_iter().map(|group| of_path(env, group.get(PATH).as_deref()));
    found.filter_map(Result::transpose).collect()
}

/// The Worker's groups, in the order of `EDGELECT_GROUPS`; without that one group.
///
/// # Errors
/// The variable that is wrong, as it was set.
pub fn all(env: &Env) -> Result<Vec<Group>, ConfigError> {
    let of = |name: &str| env.iter().find(|(own, _)| own == name).map(|(_, given)| given);
    let names = names_in(of(LIST))?;
    let overrides = overrides_in(env, &names)?;
    let is_common = |name: &str| is_ours(name) && name != LIST && split(name).is_none();
    let common = || env.iter().filter(|(name, _)| is_common(name));
    if names.is_empty() {
        return Ok(vec![make(None, common(), &[])]);
    }
    if let Some(path) = of(PATH).filter(|path| path.is_set()) {
        let own = format!("{PATH}__{}", suffix_of(&names[0]));
        let rule = format!(
            "with {LIST} each group has a lease of its own: remove this variable; {own} is that of {}",
            names[0]
        );
        return Err(ConfigError::new(PATH, path.shown(), rule));
    }
    let groups: Vec<Group> = names
        .iter()
        .map(|name| {
            let own = suffix_of(name);
            let own: Vec<&Override<'_>> =
                overrides.iter().filter(|one| one.suffix == own).collect();
            make(Some(name), common(), &own)
        })
        .collect();
    for (at, group) in groups.iter().enumerate() {
        // A number and a text may be the same path.
        let same = |other: &&Group| other.get(PATH) == group.get(PATH);
        let Some(other) = groups[..at].iter().find(same) else { continue };
        let set = [group, other].map(|one| one.source(PATH)).into_iter().find(|set| *set != PATH);
        let rule = format!(
            "the groups {} and {} would have one lease and be one group: give each a path of its own",
            other.name(),
            group.name()
        );
        return Err(ConfigError::new(set.unwrap_or(PATH), group.shown(PATH), rule));
    }
    Ok(groups)
}

fn names_in(list: Option<&Given>) -> Result<Vec<String>, ConfigError> {
    let Some(list) = list.filter(|list| list.is_set()) else { return Ok(Vec::new()) };
    let refuse = |rule: &str| Err(ConfigError::new(LIST, list.shown(), rule));
    let Given::Text(text) = list else {
        return refuse("must be names with commas between them, such as \"reports,mail\"");
    };
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = |name: &String| (1..=32).contains(&name.len()) && name.bytes().all(plain);
    if !names.iter().all(is_name) {
        return refuse(
            "each name has 1 to 32 lower-case letters, digits and dashes, and a comma is between two of them",
        );
    }
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    if let Some((_, name)) = twice {
        return refuse(&format!("there can't be two groups of the name {name}"));
    }
    if names.len() > MOST {
        let count = names.len();
        return refuse(&format!(
            "one Worker has at most {MOST} groups, these are {count}: deploy it twice"
        ));
    }
    Ok(names)
}

/// A variable that is one group's own.
struct Override<'a> {
    name: &'a str,
    variable: &'a str,
    suffix: &'a str,
    given: &'a Given,
}

/// The variable and the group's ending in a name that has both; no variable has two underscores in its own name.
fn split(name: &str) -> Option<(&str, &str)> {
    let begins = BEGINS.into_iter().chain([JOB]).find(|begin| name.starts_with(begin))?;
    let at = begins.len() + name[begins.len()..].find("__")?;
    let (variable, suffix) = (&name[..at], &name[at + 2..]);
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let whole = begins != JOB || variable == JOB;
    (whole && name.bytes().all(word)).then_some((variable, suffix))
}

fn suffix_of(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

fn overrides_in<'a>(env: &'a Env, names: &[String]) -> Result<Vec<Override<'a>>, ConfigError> {
    let mut found = Vec::new();
    for (name, given) in env {
        let Some((variable, suffix)) = split(name) else { continue };
        let refuse = |rule: &str| Err(ConfigError::new(name, "(not shown)", rule));
        if variable == LIST {
            return refuse("the list of the groups is one for the whole Worker");
        }
        if names.is_empty() {
            return refuse(&format!(
                "it would be for one group of several, and {LIST} is not set: set that, or take the ending off"
            ));
        }
        if !names.iter().any(|group| suffix_of(group) == suffix) {
            let endings: Vec<String> =
                names.iter().map(|group| format!("__{}", suffix_of(group))).collect();
            return refuse(&format!(
                "it is for none of the groups in {LIST}: those have the endings {}",
                endings.join(", ")
            ));
        }
        found.push(Override { name, variable, suffix, given });
    }
    Ok(found)
}

fn make<'a>(
    name: Option<&String>,
    common: impl Iterator<Item = &'a (String, Given)>,
    overrides: &[&Override<'_>],
) -> Group {
    let mut group = Group { name: name.cloned(), variables: Vec::new() };
    for (name, given) in common {
        group.set(name, name, given.clone());
    }
    let own = || overrides.iter().filter(|one| one.given.is_set());
    let beside = BESIDE.iter().filter(|(binding, _)| own().any(|one| one.variable == *binding));
    for (_, hidden) in beside {
        group.variables.retain(|variable| !hidden.contains(&variable.name.as_str()));
    }
    for one in own() {
        group.set(one.variable, one.name, one.given.clone());
    }
    if let Some(name) = name
        && !group.is_set(PATH)
    {
        group.set(PATH, PATH, Given::Text(format!("{name}.json")));
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn text(text: &str) -> Given {
        Given::Text(text.to_owned())
    }

    pub fn env(given: &[(&str, Given)]) -> Vec<(String, Given)> {
        given.iter().map(|(name, given)| ((*name).to_owned(), given.clone())).collect()
    }

    pub fn texts(given: &[(&str, &str)]) -> Vec<(String, Given)> {
        given.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
    }

    fn names(groups: &[Group]) -> Vec<&str> {
        groups.iter().map(Group::name).collect()
    }

    pub fn refused<T>(found: Result<T, ConfigError>, variable: &str, says: &str) {
        let error = found.err().expect(says);
        assert_eq!(error.field, variable);
        assert!(error.message().contains(says), "{}", error.message());
        assert!(!error.message().contains("hidden"), "{}", error.message());
    }

    #[test]
    fn without_a_list_there_is_one_group_with_what_it_needs_and_nothing_else() {
        for list in [None, Some("")] {
            let mut given =
                texts(&[("EDGELECT_LOCKFILE_PATH", "a"), ("AWS_REGION", "b"), ("OTHER", "c")]);
            given.push((JOB.to_owned(), Given::Service));
            given.extend(list.map(|list| (LIST.to_owned(), text(list))));
            let [group] = &*all(&given).unwrap() else { panic!("one group") };
            let seen: Vec<&str> = group.variables().map(|(name, _)| name).collect();
            assert_eq!((group.name.as_deref(), seen), (None, vec![PATH, "AWS_REGION", JOB]));
            assert_eq!(group.source(PATH), PATH);
        }
        assert_eq!(all(&[]).unwrap()[0].get(PATH), None, "the path of one group is not made up");
    }

    #[test]
    fn each_group_has_what_is_common_and_what_is_its_own_and_a_path_of_its_own() {
        let groups = all(&env(&[
            (LIST, text(" reports , mail-out")),
            (R2, Given::Bucket),
            ("EDGELECT_R2__MAIL_OUT", Given::Bucket),
            ("EDGELECT_SUSTAIN", text("30000")),
            ("EDGELECT_SUSTAIN__REPORTS", text("40000")),
            ("EDGELECT_MARGIN__MAIL_OUT", text("100")),
            ("EDGELECT_FOLLOW", text("tight")),
            ("EDGELECT_FOLLOW__REPORTS", text("")),
            ("JOB__REPORTS", Given::Service),
        ]));
        let groups = groups.unwrap();
        let get = |variable: &str| [0, 1].map(|at: usize| groups[at].get(variable));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(get("EDGELECT_SUSTAIN"), [some("40000"), some("30000")]);
        assert_eq!(get("EDGELECT_FOLLOW"), [some("tight"), some("tight")]);
        assert_eq!(get("EDGELECT_MARGIN"), [None, some("100")]);
        assert_eq!(get(PATH), [some("reports.json"), some("mail-out.json")]);
        assert_eq!([0, 1].map(|at: usize| groups[at].source(R2)), [R2, "EDGELECT_R2__MAIL_OUT"]);
        assert_eq!([0, 1].map(|at: usize| groups[at].given(JOB)), [Some(&Given::Service), None]);
        let error = ConfigError::new("EDGELECT_SUSTAIN", "x", "y");
        assert_eq!(groups[0].by_source(error).field, "EDGELECT_SUSTAIN__REPORTS");
    }

    #[test]
    fn names_that_are_none_double_or_too_many_are_refused() {
        let list = |names: &str| all(&texts(&[(LIST, names)]));
        let long = "x".repeat(33);
        for names in
            ["Reports", "a b", "a,", ",a", "a,,b", ",", " ", "a_b", "é", "a.b", &long, "a;b"]
        {
            refused(list(names), LIST, "1 to 32 lower-case letters, digits and dashes");
        }
        refused(list("a,b,a"), LIST, "two groups of the name a");
        let many =
            |count: usize| (0..count).map(|at| format!("g{at}")).collect::<Vec<_>>().join(",");
        refused(list(&many(17)), LIST, "at most 16 groups, these are 17");
        for none in [Given::Number("5".to_owned()), Given::Other] {
            refused(all(&env(&[(LIST, none)])), LIST, "must be names with commas");
        }
        assert_eq!(list(&many(16)).unwrap().len(), 16);
        assert_eq!(list(&format!("{},-,1,a--b", "x".repeat(32))).unwrap().len(), 4);
    }

    #[test]
    fn an_ending_is_for_a_group_that_there_is_and_says_which_there_are() {
        for name in [
            "EDGELECT_SUSTAIN__MAIL",
            "EDGELECT_SUSTAIN__reports",
            "EDGELECT_SUSTAIN__",
            "JOB__MAIL",
        ] {
            let given = texts(&[(LIST, "reports,mail-out"), (name, "hidden")]);
            refused(all(&given), name, "(not shown): it is for none of the groups");
            refused(all(&given), name, "have the endings __REPORTS, __MAIL_OUT");
        }
        let name = "EDGELECT_SUSTAIN__REPORTS";
        refused(all(&texts(&[(name, "hidden")])), name, "EDGELECT_GROUPS is not set");
        let of_list = texts(&[(LIST, "reports"), ("EDGELECT_GROUPS__REPORTS", "a")]);
        refused(all(&of_list), "EDGELECT_GROUPS__REPORTS", "one for the whole Worker");
    }

    #[test]
    fn a_name_whose_ending_could_be_read_as_another_s_is_read_as_its_own() {
        let given = texts(&[
            (LIST, "b,a--b,-b"),
            ("EDGELECT_MARGIN__B", "1"),
            ("EDGELECT_MARGIN__A__B", "2"),
            ("EDGELECT_MARGIN___B", "3"),
        ]);
        let margins =
            all(&given).unwrap().into_iter().map(|group| group.get("EDGELECT_MARGIN").unwrap());
        assert_eq!(margins.collect::<Vec<_>>(), ["1", "2", "3"].map(str::to_owned));
    }

    #[test]
    fn two_groups_with_one_path_are_one_group_and_refused() {
        let with = |given: &[(&str, &str)]| {
            let mut given = texts(given);
            given.push((LIST.to_owned(), text("reports,mail")));
            all(&given)
        };
        let (reports, mail) = ("EDGELECT_LOCKFILE_PATH__REPORTS", "EDGELECT_LOCKFILE_PATH__MAIL");
        refused(with(&[(PATH, "leader.json")]), PATH, "\"leader.json\": with EDGELECT_GROUPS each");
        refused(
            with(&[(mail, "reports.json")]),
            mail,
            "the groups reports and mail would have one",
        );
        refused(with(&[(reports, "mail.json")]), reports, "one lease");
        refused(with(&[(reports, "a"), (mail, "a")]), mail, "one lease");
        assert_eq!(with(&[(reports, "mail.json"), (mail, "reports.json")]).unwrap().len(), 2);
    }

    #[test]
    fn a_question_is_for_the_group_of_its_path_by_default_for_the_first() {
        let given =
            texts(&[(LIST, "reports,mail"), ("EDGELECT_LOCKFILE_PATH__MAIL", "leader/mail")]);
        for (path, name) in [
            (None, Some("reports")),
            (Some("reports.json"), Some("reports")),
            (Some("leader/mail"), Some("mail")),
            (Some("mail.json"), None),
            (Some(""), None),
        ] {
            let found = of_path(&given, path).unwrap();
            assert_eq!(found.as_ref().map(Group::name), name, "{path:?}");
        }
    }

    #[test]
    fn a_trigger_is_for_those_that_name_it_and_for_those_that_name_none() {
        let given = texts(&[
            (LIST, "reports,mail,all"),
            ("EDGELECT_CRON__REPORTS", " 0  * * * * "),
            ("EDGELECT_CRON__MAIL", "*/5 * * * *"),
        ]);
        for (trigger, there) in [
            ("0 * * * *", vec!["reports", "all"]),
            ("*/5 * * * *", vec!["mail", "all"]),
            ("* * * * *", vec!["all"]),
        ] {
            assert_eq!(names(&on_trigger(&given, trigger).unwrap()), there);
        }
        for cron in ["hourly", "0 * * *", "* * * * * *", "5", "*/5 * * * é", "*/5 * * * 1;2"] {
            let given = texts(&[(LIST, "a,b"), ("EDGELECT_CRON__A", cron)]);
            let there = on_trigger(&given, "*/5 * * * *").unwrap();
            assert_eq!(names(&there), ["a", "b"], "{cron}: it is refused there");
        }
    }

    #[test]
    fn a_number_and_a_text_that_are_one_path_are_one_lease() {
        let given = [
            (LIST, text("a,b")),
            ("EDGELECT_LOCKFILE_PATH__A", Given::Number("5".to_owned())),
            ("EDGELECT_LOCKFILE_PATH__B", text("5")),
        ];
        refused(all(&env(&given)), "EDGELECT_LOCKFILE_PATH__B", "would have one lease");
    }

    #[test]
    fn a_group_s_own_bucket_takes_the_place_of_a_common_store_of_another_kind() {
        let groups = all(&env(&[
            (LIST, text("reports,mail")),
            ("EDGELECT_STORE", text("dynamodb")),
            ("EDGELECT_TABLE", text("t")),
            ("EDGELECT_R2__MAIL", Given::Bucket),
        ]));
        let [reports, mail] = &*groups.unwrap() else { panic!("two groups") };
        for name in ["EDGELECT_STORE", "EDGELECT_TABLE"] {
            assert!(mail.given(name).is_none() && reports.is_set(name), "{name}");
        }
    }

    #[test]
    fn a_group_s_own_binding_takes_the_place_of_the_common_address() {
        let groups = all(&env(&[
            (LIST, text("reports,mail")),
            ("EDGELECT_ENDPOINT", text("https://a")),
            ("EDGELECT_BUCKET", text("b")),
            ("EDGELECT_R2__MAIL", Given::Bucket),
            (JOB_URL, text("https://job")),
            ("JOB__MAIL", Given::Service),
            ("AWS_ACCESS_KEY_ID", text("common")),
            ("AWS_ACCESS_KEY_ID__REPORTS", text("own")),
        ]));
        let [reports, mail] = &*groups.unwrap() else { panic!("two groups") };
        for name in ["EDGELECT_ENDPOINT", "EDGELECT_BUCKET", JOB_URL] {
            assert!(mail.given(name).is_none() && reports.is_set(name), "{name}");
        }
        assert_eq!(
            (mail.given(R2), mail.given(JOB)),
            (Some(&Given::Bucket), Some(&Given::Service))
        );
        let key = |group: &Group| group.get("AWS_ACCESS_KEY_ID").unwrap();
        assert_eq!((key(reports), key(mail)), ("own".to_owned(), "common".to_owned()));
    }
}
