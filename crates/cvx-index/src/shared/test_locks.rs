//! Locks for the unit tests: those of the standard library or, within [`in_any_order`], those of
//! shuttle, of which the test decides who gets them.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

const ORDERS: usize = 300;

thread_local!(static DRAWN: Cell<bool> = const { Cell::new(false) });

/// Runs threads of shuttle in many orders: any, and those in which one of them is held up for long.
pub(super) fn in_any_order(run: impl Fn() + Send + Sync + Clone + 'static) {
    // That of the property tests, which is another every night.
    let seed = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_260_101);
    in_orders_of(RandomScheduler::new_from_seed(seed, ORDERS), run.clone());
    in_orders_of(PctScheduler::new_from_seed(seed, 4, ORDERS), run);
}

fn in_orders_of(scheduler: impl Scheduler + 'static, run: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    // All threads of shuttle run on this one.
    DRAWN.set(true);
    Runner::new(scheduler, config).run(run);
    DRAWN.set(false);
}

type Locked<Guard> = Result<Guard, PoisonError<()>>;
type Reading<'a, T> = Box<dyn Deref<Target = T> + 'a>;
type Writing<'a, T> = Box<dyn DerefMut<Target = T> + 'a>;

fn locked<Guard, T>(taken: LockResult<Guard>, boxed: impl FnOnce(Guard) -> T) -> Locked<T> {
    taken.map(boxed).map_err(|_| PoisonError::new(()))
}

pub(super) enum Mutex<T> {
    Std(std::sync::Mutex<T>),
    Drawn(shuttle::sync::Mutex<T>),
}

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        match DRAWN.get() {
            false => Mutex::Std(std::sync::Mutex::new(value)),
            true => Mutex::Drawn(shuttle::sync::Mutex::new(value)),
        }
    }

    pub(super) fn lock(&self) -> Locked<Writing<'_, T>> {
        match self {
            Mutex::Std(lock) => locked(lock.lock(), |guard| Box::new(guard) as _),
            Mutex::Drawn(lock) => locked(lock.lock(), |guard| Box::new(guard) as _),
        }
    }

    /// Whether nobody holds it; only for those of the standard library.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Mutex::Std(lock) if lock.try_lock().is_ok())
    }
}

pub(super) enum RwLock<T> {
    Std(std::sync::RwLock<T>),
    Drawn(shuttle::sync::RwLock<T>),
}

impl<T> RwLock<T> {
    pub(super) fn new(value: T) -> Self {
        match DRAWN.get() {
            false => RwLock::Std(std::sync::RwLock::new(value)),
            true => RwLock::Drawn(shuttle::sync::RwLock::new(value)),
        }
    }

    pub(super) fn read(&self) -> Locked<Reading<'_, T>> {
        match self {
            RwLock::Std(lock) => locked(lock.read(), |guard| Box::new(guard) as _),
            RwLock::Drawn(lock) => locked(lock.read(), |guard| Box::new(guard) as _),
        }
    }

    pub(super) fn write(&self) -> Locked<Writing<'_, T>> {
        match self {
            RwLock::Std(lock) => locked(lock.write(), |guard| Box::new(guard) as _),
            RwLock::Drawn(lock) => locked(lock.write(), |guard| Box::new(guard) as _),
        }
    }

    /// Whether a reader is let in at once; only for those of the standard library.
    pub(super) fn lets_in(&self) -> bool {
        matches!(self, RwLock::Std(lock) if lock.try_read().is_ok())
    }
}
