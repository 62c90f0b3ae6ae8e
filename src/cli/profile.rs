//! Keys and places out of the profiles of AWS's files. Other kinds of profiles (roles, single sign-on, processes) give no keys here.

use std::path::PathBuf;

use configparser::ini::{Ini, IniDefault};
use edgelect::vars;

/// What a profile says, as variables.
pub type Variables = Vec<(&'static str, String)>;

/// The keys of a profile, and its region and endpoint, as the npm package's command line takes them: the same flags must not lead
/// to two stores.
///
/// # Errors
/// There is no such profile, or it has no keys.
pub fn read(profile: &str, get: impl Fn(&str) -> Option<String>) -> Result<Variables, String> {
    let read = |variable: &str, file: &str| match get(variable) {
        Some(path) => parsed(path.into()),
        None => std::env::home_dir()
            .map(|home| home.join(".aws").join(file))
            .map_or_else(|| Ok(ini()), parsed),
    };
    let credentials = read("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
    let config = read("AWS_CONFIG_FILE", "config")?;
    let section =
        if profile == "default" { profile.to_owned() } else { format!("profile {profile}") };
    let find = |key: &str| credentials.get(profile, key).or_else(|| config.get(&section, key));
    let known = |ini: &Ini, name: &str| ini.sections().iter().any(|one| one == name);
    if !known(&credentials, profile) && !known(&config, &section) {
        return Err("there is no such profile".to_owned());
    }
    let keys = find("aws_access_key_id").zip(find("aws_secret_access_key"));
    let Some((access_key_id, secret_access_key)) = keys else {
        return Err(format!(
            "it has no aws_access_key_id with an aws_secret_access_key: set the variables that \
             `aws configure export-credentials --profile {profile} --format env` prints, or use npx edgelect"
        ));
    };
    let mut found =
        vec![("AWS_ACCESS_KEY_ID", access_key_id), ("AWS_SECRET_ACCESS_KEY", secret_access_key)];
    found.extend(find("aws_session_token").map(|token| ("AWS_SESSION_TOKEN", token)));
    let place = |key: &str| {
        let files = [config.get(&section, key), credentials.get(profile, key)];
        files.into_iter().flatten().find(|text| !text.is_empty())
    };
    // Another name of a variable that is set already would win over it.
    if vars::region(&get).is_none() {
        found.extend(place("region").map(|region| ("AWS_REGION", region)));
    }
    found.extend(place("endpoint_url").map(|url| ("AWS_ENDPOINT_URL", url)));
    Ok(found)
}

/// Names are as they are written, and a value ends with its line.
fn ini() -> Ini {
    let mut how = IniDefault::default();
    how.case_sensitive = true;
    how.delimiters = vec!['='];
    how.enable_inline_comments = false;
    Ini::new_from_defaults(how)
}

fn parsed(path: PathBuf) -> Result<Ini, String> {
    let mut ini = ini();
    // A file that is not there has no profiles.
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    // Nothing of its text is told: a line of it may be a key.
    ini.read(unnested(&text)).map_err(|_| format!("{} can't be understood", path.display()))?;
    Ok(ini)
}

/// The lines of a file of AWS's but for those that are indented below a key without a value: they are settings of that key's,
/// such as an `endpoint_url` below `s3 =`, and none of the profile's.
fn unnested(text: &str) -> String {
    let mut nested = false;
    let mut kept = String::new();
    for line in text.lines() {
        let indented = line.starts_with([' ', '\t']);
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with(['#', ';']) {
            let begins = trimmed.split_once('=').is_some_and(|(_, value)| value.trim().is_empty());
            nested = begins || nested && indented;
        }
        if !(nested && indented) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
