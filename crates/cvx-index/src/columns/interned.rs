//! Values stored once and named by a number, in the order they first came.

use std::collections::HashMap;
use std::hash::Hash;

/// A table of distinct values.
#[derive(Clone, Debug)]
pub(crate) struct Interned<T> {
    values: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Interned<T> {
    pub(crate) fn new() -> Self {
        Interned {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The table of these values, in this order; `None` if one of them comes twice.
    pub(crate) fn from_values(values: Vec<T>) -> Option<Self> {
        let places: HashMap<T, u32> = values.iter().cloned().zip(0..).collect();
        (places.len() == values.len()).then_some(Interned { values, places })
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
        match self.place(value) {
            Some(place) => place,
            None => self.push(T::from(value)),
        }
    }

    /// The place of a value that has none yet.
    fn push(&mut self, value: T) -> u32 {
        // Values come from nodes, of which there are fewer than u32::MAX.
        let place = self.values.len() as u32;
        self.values.push(value.clone());
        self.places.insert(value, place);
        place
    }

    /// The table of the values at these places alone, and where each of them is there. What is no
    /// place stays what it is.
    pub(crate) fn kept(&self, places: &[u32]) -> (Self, Vec<u32>) {
        let mut kept = Interned::new();
        let mut moved = vec![None; self.values.len()];
        let mut move_to = |&place: &u32| match self.get(place) {
            Some(value) => *moved[place as usize].get_or_insert_with(|| kept.push(value.clone())),
            None => place,
        };
        let places = places.iter().map(&mut move_to).collect();
        (kept, places)
    }
}
