//! Strings as numbers, in the order they were first seen.

use std::collections::HashMap;
use std::hash::Hash;

/// A table of distinct values.
#[derive(Clone, Debug)]
pub(crate) struct Names<T> {
    values: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Names<T> {
    pub(crate) fn new() -> Self {
        Names {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The table of these values, in this order; `None` if one of them comes twice.
    pub(crate) fn from_values(values: Vec<T>) -> Option<Self> {
        let places: HashMap<T, u32> = values.iter().cloned().zip(0..).collect();
        (places.len() == values.len()).then_some(Names { values, places })
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.values.get(place as usize)
    }

    pub(crate) fn place<Q>(&self, value: &Q) -> Option<u32>
    where
        T: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.places.get(value).copied()
    }

    /// The place of a value, which is given one if it has none.
    pub(crate) fn intern<Q>(&mut self, value: &Q) -> u32
    where
        T: std::borrow::Borrow<Q> + for<'a> From<&'a Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(place) = self.place(value) {
            return place;
        }
        // Values come from nodes, of which there are fewer than u32::MAX.
        let place = self.values.len() as u32;
        self.values.push(T::from(value));
        self.places.insert(T::from(value), place);
        place
    }
}
