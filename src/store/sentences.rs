//! What several stores say alike, and what people are told of it.

/// Codes that ask for fresh credentials.
pub(super) const EXPIRED: [&str; 4] =
    ["ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"];

/// Said of a store that is unwell or asks for fewer requests. Whoever asks again says so: not every caller does.
pub(super) const BUSY: &str = "the store is busy or unwell";

/// Said of a conflict with somebody else's request.
pub(super) const OTHER_WRITE: &str = "another write is under way";

/// What to do about a denial of this code, where it means the same in every store.
pub(super) fn denial(code: &str) -> Option<&'static str> {
    match code {
        "RequestTimeTooSkewed" | "RequestExpired" => Some(
            "the clocks of this machine and of the store are too far apart, and the answer does not say \
             how far; set this machine's clock",
        ),
        code if EXPIRED.contains(&code) => Some(
            "the credentials have expired, and no fresh ones came; check the credentials provider",
        ),
        _ => None,
    }
}
