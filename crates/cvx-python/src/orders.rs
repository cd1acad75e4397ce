//! A quick look at texts that may read like an order to a model, before any pattern is asked.

use std::array;
use std::sync::LazyLock;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Plain ASCII that reads like an order holds one of these, in lower case, if nothing in it is hidden.
#[rustfmt::skip]
const SIGNS: [&str; 31] = [
    "<", "[", "ignor", "disregard", "forget", "overrid", "bypass", "you are now", "you must now",
    "instruction", "directive", "prompt", "api key", "password", "system", "assistant", "act as",
    "behave as", "respond as", " tell", " reveal", " mention", " inform", "missacht", "verg",
    "oublie", "olvid", "negeer", "dimentica", "esquec", "desconsider",
];
/// So many characters of Base64 in a row may hide something.
const ENCODED: usize = 20;
/// So many letters, each apart from the next by one sign, may be a word.
const SPELLED: u8 = 5;

/// The signs that begin with each byte.
static BY_FIRST: LazyLock<[Vec<&[u8]>; 256]> = LazyLock::new(|| {
    let signs = SIGNS.map(str::as_bytes);
    array::from_fn(|first| {
        let begins = |sign: &&[u8]| usize::from(sign[0]) == first;
        signs.into_iter().filter(begins).collect()
    })
});

/// Of each text whether it may read like an order: it is not plain ASCII, or holds a word of an
/// order, letters that are spelled out, or Base64. Where it does not, no pattern need be asked.
#[pyfunction]
pub fn may_hide_orders(texts: Vec<Bound<'_, PyString>>) -> Vec<bool> {
    let signs = &*BY_FIRST;
    // A half of a surrogate pair is no text of Rust's, and not ASCII.
    let may = |text: &Bound<'_, PyString>| text.to_str().map_or(true, |text| may_hide(text, signs));
    texts.iter().map(may).collect()
}

fn may_hide(text: &str, signs: &[Vec<&[u8]>; 256]) -> bool {
    if !text.is_ascii() {
        return true;
    }
    let text = text.to_ascii_lowercase();
    let mut encoded = 0;
    // How many letters were spelled out when a sign was met: the last, and the one before it.
    let (mut last, mut before) = (0, 0);
    for (at, &sign) in text.as_bytes().iter().enumerate() {
        let of_word = sign.is_ascii_alphanumeric() || sign == b'_';
        encoded = match of_word || matches!(sign, b'+' | b'/' | b'-') {
            true => encoded + 1,
            false => 0,
        };
        let apart = at > 0 && matches!(text.as_bytes()[at - 1], b' ' | b'.' | b'_' | b'-');
        let spelled = match (of_word, apart) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => before + 1,
        };
        if encoded >= ENCODED || spelled >= SPELLED {
            return true;
        }
        (before, last) = (last, spelled);
        let held = |one: &&[u8]| text.as_bytes()[at..].starts_with(one);
        if signs[usize::from(sign)].iter().any(held) {
            return true;
        }
    }
    false
}
