//! Fast hashing: of contents into ETags, and of ETags in maps.

use std::hash::Hasher;

/// A content hash of 64 bits, well mixed, so that different bodies never meet in a run.
#[derive(Clone, Copy, Default)]
pub struct Fingerprint(u64);

impl Fingerprint {
    pub fn number(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(23);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// Sixteen hexadecimal digits between two marks.
    pub fn text(self, mark: &str) -> String {
        let mut text = String::with_capacity(18);
        text.push_str(mark);
        for shift in (0..16).rev() {
            let digit = (self.0 >> (4 * shift)) & 15;
            text.push(char::from(b"0123456789abcdef"[digit as usize]));
        }
        text.push_str(mark);
        text
    }
}

/// For maps that are only looked up in: the keys are hashes already.
#[derive(Default)]
pub struct Quick(Fingerprint);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0.0
    }
}
