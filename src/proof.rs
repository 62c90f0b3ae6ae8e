//! Proofs between the members of a group: HMAC-SHA256 by a secret that they share.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The shortest secret, in bytes: nobody guesses one.
pub const MIN_SECRET_BYTES: usize = 16;

/// The longest secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 256;

/// How many secrets are accepted at once: the old one and the new one, while they change.
pub const MOST_SECRETS: usize = 2;

/// What no `Debug` shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden<T>(pub T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// The secrets of a group's members: the first one signs, each of them is accepted. Its `Debug` shows how many there are.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Takes one or two secrets; `None` if one is too short, too long, or has anything but printable ASCII without spaces
    /// and commas.
    pub fn new(secrets: Vec<String>) -> Option<Self> {
        let usable = |secret: &String| {
            (MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&secret.len())
                && secret.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
        };
        let right = (1..=MOST_SECRETS).contains(&secrets.len()) && secrets.iter().all(usable);
        right.then_some(Self(secrets))
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }

    /// The proof of a text, in hex; `None` without a secret.
    pub fn proof(&self, text: &str) -> Option<String> {
        let secret = self.0.first()?;
        Some(hex::encode(mac(secret, text).finalize().into_bytes()))
    }

    /// Whether one of the secrets proves a text; compared in constant time.
    pub fn prove(&self, text: &str, proof: &str) -> bool {
        let Ok(proof) = hex::decode(proof) else { return false };
        self.0.iter().any(|secret| mac(secret, text).verify_slice(&proof).is_ok())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

fn mac(secret: &str, text: &str) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.chain_update(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(texts: &[&str]) -> Option<Secrets> {
        Secrets::new(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn a_proof_is_of_one_text_and_while_secrets_change_either_proves() {
        let old = secrets(&["0123456789abcdef"]).unwrap();
        let both = secrets(&["fedcba9876543210", "0123456789abcdef"]).unwrap();
        let new = secrets(&["fedcba9876543210"]).unwrap();
        let (by_old, by_new) = (old.proof("a").unwrap(), both.proof("a").unwrap());
        assert!(old.prove("a", &by_old) && both.prove("a", &by_old) && both.prove("a", &by_new));
        assert!(new.prove("a", &by_new) && !new.prove("a", &by_old) && !old.prove("a", &by_new));
        assert!(!old.prove("b", &by_old) && !old.prove("a", "") && !old.prove("a", "zz"));
        assert!(!old.prove("a", &by_old[..32]), "half a proof is none");
        assert_eq!(Secrets::default().proof("a"), None);
        assert!(!Secrets::default().prove("a", &by_old));
    }

    #[test]
    fn it_is_what_openssl_makes_and_shows_no_secret() {
        let secrets = secrets(&["JefeJefeJefeJefe"]).unwrap();
        // openssl dgst -sha256 -hmac JefeJefeJefeJefe
        let proof = secrets.proof("what do ya want for nothing?").unwrap();
        assert_eq!(proof, "2ccd85dfc8d18cb5d84fef4b198554699fece6e8692c9147b0da983f5b7bd413");
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }

    #[test]
    fn a_secret_is_long_and_of_plain_letters_and_there_are_two_at_most() {
        let long = "x".repeat(257);
        for bad in [
            &[][..],
            &["short"],
            &["0123456789abcde f"],
            &["0123456789abcdef,"],
            &["0123456789abcdeä"],
            &[long.as_str()],
            &["0123456789abcdef", ""],
            &["0123456789abcdef", "0123456789abcde1", "0123456789abcde2"],
        ] {
            assert_eq!(secrets(bad), None, "{bad:?}");
        }
    }
}
