//! Which store the variables name, where it is, and with what credentials.

use serde::Serialize;

use super::{FORMAT, Kind, R2, STORE, first_set, missing, value};
use crate::config::ConfigError;
use crate::json::{self, Object};
use crate::lease::Format;
use crate::text::{first, quoted};

/// The rule of `EDGELECT_FORMAT`, and of the option `format`.
pub(crate) const FORMATS: &str =
    "must be native or kubernetes, the same for every member of the group";

/// What names the address of an S3 store: the first that is set.
pub(super) const S3_ENDPOINT: [&str; 3] =
    ["EDGELECT_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// What names the region: the first that is set.
pub(super) const REGION: [&str; 3] = ["EDGELECT_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"];

/// The bucket that the variables name. Secrets are not in here, so that it may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketVars {
    /// `EDGELECT_ENDPOINT`, or `AWS_ENDPOINT_URL_S3`, or `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// `EDGELECT_BUCKET`.
    pub bucket: String,
    /// `EDGELECT_REGION`, or `AWS_REGION`, or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// `EDGELECT_PATH_STYLE`.
    pub path_style: Option<bool>,
    /// `EDGELECT_FORMAT`.
    pub format: Format,
}

impl BucketVars {
    /// The options of `new S3Storage`.
    pub fn to_json(&self) -> String {
        json::of(self)
    }
}

/// The credentials that the variables name.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretVars {
    /// `EDGELECT_ACCESS_KEY_ID`, or `AWS_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// `EDGELECT_SECRET_ACCESS_KEY`, or `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: String,
    /// `EDGELECT_SESSION_TOKEN`, or `AWS_SESSION_TOKEN`.
    pub session_token: Option<String>,
}

/// A store, as `EDGELECT_STORE` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreName {
    /// `s3`: an object in a bucket.
    S3,
    /// `epochs`: an object for each epoch in a bucket of a store without `If-Match`.
    Epochs,
    /// `r2`: a bucket that is bound to the Worker.
    R2,
    /// `dynamodb`: an item in a table.
    DynamoDb,
    /// `route53`: a TXT record in a zone.
    Route53,
}

impl StoreName {
    /// The name for variables.
    pub fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Epochs => "epochs",
            Self::R2 => "r2",
            Self::DynamoDb => "dynamodb",
            Self::Route53 => "route53",
        }
    }

    /// The variables that name this store and no other.
    fn own_vars(self) -> &'static [&'static str] {
        match self {
            Self::S3 | Self::Epochs => &["EDGELECT_BUCKET"],
            Self::R2 => &[],
            Self::DynamoDb => &["EDGELECT_TABLE"],
            Self::Route53 => {
                &["EDGELECT_HOSTED_ZONE_ID", "EDGELECT_RECORD_PREFIX", "EDGELECT_DOMAIN_NAME"]
            }
        }
    }
}

/// Reads which store it is. Without `EDGELECT_STORE` it is the R2 bucket that is bound, unless an endpoint names another
/// place; without a binding it is S3.
///
/// # Errors
/// There is no store of that name, none at all, or the variables name two.
pub fn store_name(
    get: impl Fn(&str) -> Option<String>,
    bound: bool,
) -> Result<StoreName, ConfigError> {
    let set = |name: &&str| first_set(&get, &[name]).is_some();
    let named = match first_set(&get, &[STORE]).as_deref() {
        None => None,
        Some("s3") => Some(StoreName::S3),
        Some("epochs") => Some(StoreName::Epochs),
        Some("r2") => Some(StoreName::R2),
        Some("dynamodb") => Some(StoreName::DynamoDb),
        Some("route53") => Some(StoreName::Route53),
        Some(other) => {
            let rule = "must be s3, r2, epochs, dynamodb or route53";
            return Err(ConfigError::new(STORE, quoted(first(other, 60)), rule));
        }
    };
    for (other, store) in [(StoreName::DynamoDb, "dynamodb"), (StoreName::Route53, "route53")] {
        let own = other.own_vars().iter().find(|var| named != Some(other) && set(var));
        if let Some(var) = own {
            let rule = format!(
                "is for EDGELECT_STORE = {store}, and another store is chosen: set that, or remove this"
            );
            return Err(ConfigError::new(var, "(not shown)", rule));
        }
    }
    let elsewhere =
        ["EDGELECT_ENDPOINT", "EDGELECT_BUCKET", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
    let r2 = match named {
        Some(StoreName::R2) if !bound => {
            let rule = "the store is r2 (EDGELECT_STORE): bind an R2 bucket by this name, [[r2_buckets]] in wrangler.toml";
            return Err(ConfigError::new(R2, "(not bound)", rule));
        }
        Some(name) if name != StoreName::R2 => return Ok(name),
        Some(_) => elsewhere.iter().find(|var| set(var)),
        None if set(&elsewhere[0]) => return Ok(StoreName::S3),
        None => elsewhere.iter().find(|var| set(var)),
    };
    match r2 {
        Some(var) if bound => {
            let rule = "this is one store and the R2 binding EDGELECT_R2 another, and two stores make two leaders: \
                        remove this variable to use the binding, or the binding from wrangler.toml to use this, or \
                        say by EDGELECT_STORE which it is";
            // An address may have a password or a signature in it.
            Err(ConfigError::new(var, "(not shown)", rule))
        }
        Some(_) => Ok(StoreName::S3),
        None if bound => Ok(StoreName::R2),
        None => {
            let rule = "name the bucket that keeps the lease, or bind an R2 bucket as EDGELECT_R2 ([[r2_buckets]] in \
                        wrangler.toml), or another store by EDGELECT_STORE";
            Err(missing("EDGELECT_BUCKET", rule))
        }
    }
}

/// The same for a program, to which nothing is bound: without a name it is S3.
///
/// # Errors
/// There is no store of that name for programs, or the variables name two.
pub fn program_store(get: impl Fn(&str) -> Option<String>) -> Result<StoreName, ConfigError> {
    let name = first_set(&get, &[STORE]).unwrap_or_else(|| StoreName::S3.name().to_owned());
    if name == StoreName::R2.name() {
        let rule = "is for Workers, to which a bucket is bound: a program takes s3 and the S3 endpoint \
                    of R2 (EDGELECT_ENDPOINT), with EDGELECT_REGION = auto";
        return Err(ConfigError::new(STORE, quoted(&name), rule));
    }
    store_name(|var| if var == STORE { Some(name.clone()) } else { get(var) }, false)
}

/// Where the store of a program is, as the options of the npm package's storage of this name.
///
/// # Errors
/// The variable that is missing or cannot be used, and why.
pub fn place(
    get: impl Fn(&str) -> Option<String>,
    store: StoreName,
) -> Result<Object, ConfigError> {
    let mut place = Object::new();
    match store {
        StoreName::S3 | StoreName::Epochs | StoreName::R2 => {
            return Ok(Object::of(&bucket(get)?));
        }
        StoreName::DynamoDb => {
            place.set("region", json::of(&region(&get)));
            place.set("table", json::of(&table(&get)?));
        }
        StoreName::Route53 => {
            for (option, text) in
                ["hostedZoneId", "recordPrefix", "domainName"].iter().zip(zone(&get)?)
            {
                place.set(option, json::of(&text));
            }
        }
    }
    place.set("endpoint", json::of(&endpoint(&get, store)));
    Ok(place)
}

/// The name of the table.
///
/// # Errors
/// `EDGELECT_TABLE` is missing, or `EDGELECT_FORMAT` names a form that an item does not have.
pub fn table(get: impl Fn(&str) -> Option<String>) -> Result<String, ConfigError> {
    only_native(&get)?;
    needed(get, "EDGELECT_TABLE", "name the table, whose keys are pk and sk")
}

/// The zone's id, what its record begins with, and its domain.
///
/// # Errors
/// One of them is missing, or `EDGELECT_FORMAT` names a form that a TXT record does not have.
pub fn zone(get: impl Fn(&str) -> Option<String>) -> Result<[String; 3], ConfigError> {
    only_native(&get)?;
    let id = "give the hosted zone's id, such as Z1234567890ABC";
    let prefix = "give what the record's name begins with, such as lock";
    let domain = "give the zone's domain, or one below it, with which the record's name ends";
    Ok([
        needed(&get, "EDGELECT_HOSTED_ZONE_ID", id)?,
        needed(&get, "EDGELECT_RECORD_PREFIX", prefix)?,
        needed(&get, "EDGELECT_DOMAIN_NAME", domain)?,
    ])
}

/// Refuses a choice of a store where there is none but S3.
///
/// # Errors
/// `EDGELECT_STORE` names another.
pub fn only_s3(get: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
    match first_set(&get, &[STORE]).as_deref() {
        None | Some("s3") => Ok(()),
        Some(other) => {
            let rule = "only s3 is taken from variables here; make another store of its options";
            Err(ConfigError::new(STORE, quoted(first(other, 60)), rule))
        }
    }
}

/// The address of a service, if one is set.
pub fn endpoint(get: impl Fn(&str) -> Option<String>, store: StoreName) -> Option<String> {
    let own = match store {
        StoreName::S3 | StoreName::Epochs | StoreName::R2 => S3_ENDPOINT[1],
        StoreName::DynamoDb => "AWS_ENDPOINT_URL_DYNAMODB",
        StoreName::Route53 => "AWS_ENDPOINT_URL_ROUTE_53",
    };
    let [ours, _, all] = S3_ENDPOINT;
    first_set(&get, &[ours, own, all])
}

/// The region, if one is set.
pub fn region(get: impl Fn(&str) -> Option<String>) -> Option<String> {
    first_set(&get, &REGION)
}

/// The text of a variable that has to be set.
///
/// # Errors
/// It is not, with what to do.
fn needed(
    get: impl Fn(&str) -> Option<String>,
    var: &str,
    rule: &str,
) -> Result<String, ConfigError> {
    first_set(&get, &[var]).ok_or_else(|| missing(var, rule))
}

/// Refuses a record's format for a store that has a form of its own.
///
/// # Errors
/// `EDGELECT_FORMAT` names another than the native one.
fn only_native(get: impl Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
    if format(get)? == Format::Native {
        return Ok(());
    }
    let rule = "this store has a form of its own: remove this variable";
    Err(ConfigError::new(FORMAT, "\"kubernetes\"", rule))
}

/// Reads where the bucket is.
///
/// # Errors
/// `EDGELECT_BUCKET` is missing, `EDGELECT_PATH_STYLE` is no flag, or `EDGELECT_FORMAT` no format.
pub fn bucket(get: impl Fn(&str) -> Option<String>) -> Result<BucketVars, ConfigError> {
    let format = format(&get)?;
    let path_style = match get("EDGELECT_PATH_STYLE").filter(|text| !text.is_empty()) {
        Some(text) => json::flag(&value("EDGELECT_PATH_STYLE", &text, Kind::Flag)?),
        None => None,
    };
    Ok(BucketVars {
        endpoint: endpoint(&get, StoreName::S3),
        bucket: needed(&get, "EDGELECT_BUCKET", "name the bucket that keeps the lease")?,
        region: region(&get),
        path_style,
        format,
    })
}

/// Reads the record's format.
///
/// # Errors
/// `EDGELECT_FORMAT` names none.
pub fn format(get: impl Fn(&str) -> Option<String>) -> Result<Format, ConfigError> {
    match first_set(&get, &[FORMAT]) {
        None => Ok(Format::default()),
        Some(name) => Format::named(&name)
            .ok_or_else(|| ConfigError::new(FORMAT, quoted(first(&name, 60)), FORMATS)),
    }
}

/// How a secret is set here.
const SET_SECRET: &str = if cfg!(all(target_arch = "wasm32", feature = "workerd")) {
    "set it by `npx wrangler secret put NAME`"
} else {
    "set it in the environment of this program; names with AWS_ in place of EDGELECT_ do as well"
};

/// Reads the credentials; a session token belongs to the pair that it came with.
///
/// # Errors
/// The variable that is missing, or has more than one line.
pub fn secrets(get: impl Fn(&str) -> Option<String>) -> Result<SecretVars, ConfigError> {
    let prefix = ["EDGELECT", "AWS"].into_iter().find(|prefix| {
        ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"]
            .iter()
            .any(|name| first_set(&get, &[&format!("{prefix}_{name}")]).is_some())
    });
    let prefix = prefix.unwrap_or("EDGELECT");
    let one = |name: &str| first_set(&get, &[&format!("{prefix}_{name}")]);
    let needed = |name: &str| {
        one(name).ok_or_else(|| {
            let var = format!("{prefix}_{name}");
            missing(&var, SET_SECRET)
        })
    };
    let secrets = SecretVars {
        access_key_id: needed("ACCESS_KEY_ID")?,
        secret_access_key: needed("SECRET_ACCESS_KEY")?,
        session_token: one("SESSION_TOKEN"),
    };
    let token = secrets.session_token.as_deref().unwrap_or_default();
    check_one_line([
        (&format!("{prefix}_ACCESS_KEY_ID"), &secrets.access_key_id),
        (&format!("{prefix}_SECRET_ACCESS_KEY"), &secrets.secret_access_key),
        (&format!("{prefix}_SESSION_TOKEN"), token),
    ])?;
    Ok(secrets)
}

/// Refuses credentials with a control character, which no signature and no header can carry.
pub(crate) fn check_one_line(texts: [(&str, &str); 3]) -> Result<(), ConfigError> {
    match texts.iter().find(|(_, text)| text.chars().any(char::is_control)) {
        None => Ok(()),
        Some((name, _)) => {
            let rule = "must be a text of one line without control characters; what was read from a \
                        file often ends with a newline: remove it";
            Err(ConfigError::new(name, "(not shown)", rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn a_secret_that_is_no_line_of_text_is_refused_and_not_shown() {
        for name in ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"] {
            let var = format!("EDGELECT_{name}");
            let get = |asked: &str| {
                let text = if asked == var { "hidden\0" } else { "fine" };
                asked.starts_with("EDGELECT_").then(|| text.to_owned())
            };
            let error = secrets(get).err().expect("it is refused");
            let told = format!(
                "{var} = (not shown): must be a text of one line without control characters; what was \
                 read from a file often ends with a newline: remove it"
            );
            assert_eq!(error.message(), told);
        }
    }

    #[test]
    fn credentials_come_from_one_family_of_variables_and_errors_show_none() {
        let mixed = [("AWS_ACCESS_KEY_ID", "aws"), ("EDGELECT_SECRET_ACCESS_KEY", "hidden")];
        let error = secrets(of(&mixed)).err().map(|error| (error.field.clone(), error.to_string()));
        let (field, text) = error.unwrap();
        assert_eq!(field, "EDGELECT_ACCESS_KEY_ID");
        assert!(!text.contains("hidden") && !text.contains("aws"));
        let aws = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_SESSION_TOKEN", "c"),
        ];
        let read = secrets(of(&aws)).ok().unwrap();
        assert_eq!(read.session_token.as_deref(), Some("c"));
    }

    #[test]
    fn a_missing_secret_of_a_program_is_not_set_by_wrangler() {
        let told = secrets(of(&[])).err().expect("it is missing").message();
        let to_do =
            "EDGELECT_ACCESS_KEY_ID = (not set): set it in the environment of this program; ";
        assert!(told.starts_with(to_do), "{told}");
    }

    #[test]
    fn a_store_is_chosen_by_name_or_by_what_there_is_and_never_two() {
        use StoreName::{DynamoDb, Epochs, R2, Route53, S3};
        let (endpoint, bucket) = (("EDGELECT_ENDPOINT", "https://a"), ("EDGELECT_BUCKET", "b"));
        for (vars, bound, store) in [
            (&[][..], true, R2),
            (&[("EDGELECT_BUCKET", "")], true, R2),
            (&[endpoint, bucket], true, S3),
            (&[bucket], false, S3),
            (&[("EDGELECT_STORE", "s3"), bucket], true, S3),
            (&[("EDGELECT_STORE", "epochs"), bucket], true, Epochs),
            (&[("EDGELECT_STORE", "r2")], true, R2),
            (&[("EDGELECT_STORE", "dynamodb"), ("EDGELECT_TABLE", "t")], true, DynamoDb),
            (&[("EDGELECT_STORE", "route53"), endpoint], false, Route53),
        ] {
            assert_eq!(store_name(of(vars), bound), Ok(store), "{vars:?}");
        }
        for (vars, bound, refused) in [
            (&[][..], false, "EDGELECT_BUCKET"),
            (&[bucket], true, "EDGELECT_BUCKET"),
            (&[("AWS_ENDPOINT_URL", "https://a")], true, "AWS_ENDPOINT_URL"),
            (&[("AWS_ENDPOINT_URL_S3", "https://a")], true, "AWS_ENDPOINT_URL_S3"),
            (&[("EDGELECT_STORE", "S3")], true, "EDGELECT_STORE"),
            (&[("EDGELECT_STORE", "r2")], false, "EDGELECT_R2"),
            (&[("EDGELECT_STORE", "r2"), endpoint], true, "EDGELECT_ENDPOINT"),
            (&[("EDGELECT_TABLE", "t")], true, "EDGELECT_TABLE"),
            (
                &[("EDGELECT_STORE", "s3"), ("EDGELECT_DOMAIN_NAME", "d")],
                true,
                "EDGELECT_DOMAIN_NAME",
            ),
        ] {
            assert_eq!(store_name(of(vars), bound).unwrap_err().field, refused, "{vars:?}");
        }
    }
}
