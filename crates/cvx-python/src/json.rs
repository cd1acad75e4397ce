//! JSON as `json.dumps` writes it without spaces, several times faster where there are many floats; and
//! the checksums of rows, which are of such JSON.

use std::fmt::Write;

use crc32fast::Hasher;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Lists within lists, from which on a value is refused: one may hold itself.
const DEEPEST: usize = 100;

/// A value as ASCII JSON without spaces, as `json.dumps` has it.
#[pyfunction]
pub fn compact_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut out = String::new();
    put(value, &mut out, 0)?;
    Ok(out)
}

/// The checksum of each row, without its last value: of its bytes, then of the JSON of all values with the
/// length of bytes in their place.
#[pyfunction]
pub fn row_checksums(rows: Vec<Bound<'_, PyTuple>>) -> PyResult<Vec<u32>> {
    let mut text = String::new();
    let checksum = |row: &Bound<'_, PyTuple>| {
        let mut sum = Hasher::new();
        text.clear();
        for (place, value) in row.iter().take(row.len().saturating_sub(1)).enumerate() {
            text.push(if place == 0 { '[' } else { ',' });
            if let Ok(bytes) = value.cast_exact::<PyBytes>() {
                sum.update(bytes.as_bytes());
                let _ = write!(text, "{}", bytes.as_bytes().len());
            } else if let Ok(number) = value.cast_exact::<PyFloat>() {
                // SQLite stores -0.0 as 0.0.
                put_float(number.value() + 0.0, &mut text);
            } else {
                put(&value, &mut text, 1)?;
            }
        }
        text.push_str(if row.len() < 2 { "[]" } else { "]" });
        sum.update(text.as_bytes());
        Ok(sum.finalize())
    };
    rows.iter().map(checksum).collect()
}

fn put(value: &Bound<'_, PyAny>, out: &mut String, depth: usize) -> PyResult<()> {
    if depth > DEEPEST {
        let message = format!("a value has more than {DEEPEST} lists within lists");
        return Err(PyValueError::new_err(message));
    }
    if value.is_none() {
        out.push_str("null");
    } else if let Ok(text) = value.cast::<PyString>() {
        put_text(text, out)?;
    } else if let Ok(flag) = value.cast::<PyBool>() {
        out.push_str(if flag.is_true() { "true" } else { "false" });
    } else if let Ok(number) = value.cast::<PyFloat>() {
        put_float(number.value(), out);
    } else if let Ok(number) = value.cast::<PyInt>() {
        match number.extract::<i64>() {
            // Writing to a text cannot fail.
            Ok(number) => {
                let _ = write!(out, "{number}");
            }
            Err(_) => out.push_str(number.str()?.to_str()?),
        }
    } else if let Ok(items) = value.cast::<PyList>() {
        put_all(items.iter(), out, depth)?;
    } else if let Ok(items) = value.cast::<PyTuple>() {
        put_all(items.iter(), out, depth)?;
    } else if let Ok(items) = value.cast::<PyDict>() {
        out.push('{');
        for (place, (key, item)) in items.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            put_text(key.cast::<PyString>()?, out)?;
            out.push(':');
            put(&item, out, depth + 1)?;
        }
        out.push('}');
    } else {
        let kind = value.get_type().name()?;
        let message = format!("Object of type {kind} is not JSON serializable");
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

fn put_all<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    out: &mut String,
    depth: usize,
) -> PyResult<()> {
    out.push('[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(',');
        }
        put(&item, out, depth + 1)?;
    }
    out.push(']');
    Ok(())
}

fn put_text(text: &Bound<'_, PyString>, out: &mut String) -> PyResult<()> {
    out.push('"');
    match text.to_str() {
        Ok(text) => put_signs(text, out),
        Err(_) => {
            // Half of a surrogate pair, which is no text of Rust's.
            let halves = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
            for half in halves.cast::<PyBytes>()?.as_bytes().chunks_exact(2) {
                let half = u16::from_le_bytes([half[0], half[1]]);
                match char::from_u32(half.into()) {
                    Some(sign) if sign.is_ascii() => put_signs(sign.encode_utf8(&mut [0; 4]), out),
                    _ => {
                        let _ = write!(out, "\\u{half:04x}");
                    }
                }
            }
        }
    }
    out.push('"');
    Ok(())
}

fn put_signs(mut text: &str, out: &mut String) {
    let special = |sign: u8| !matches!(sign, b' '..=b'~') || matches!(sign, b'"' | b'\\');
    while let Some(plain) = text.bytes().position(special) {
        out.push_str(&text[..plain]);
        let mut rest = text[plain..].chars();
        let Some(sign) = rest.next() else { break };
        text = rest.as_str();
        match sign {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ => {
                for half in sign.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{half:04x}");
                }
            }
        }
    }
    out.push_str(text);
}

/// The shortest digits that read back as the same number, in the form of Python's `repr`.
fn put_float(number: f64, out: &mut String) {
    if number.is_nan() {
        return out.push_str("NaN");
    }
    if number.is_infinite() {
        return out.push_str(if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        });
    }
    let size = number.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        // Debug writes the point that Display leaves out, and no exponent within these bounds.
        let _ = write!(out, "{number:?}");
        return;
    }
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
}
