//! One thread acquires and releases: `uncontended LOCK ROUNDS`. Without arguments, the names. For
//! `scripts/lock-instructions.sh`, which counts the instructions; the loop around is 3 to 4 of them.

use std::hint::black_box;
use wattwise_locks::wait::{Spin, SpinThenPark};
use wattwise_locks::{Adaptive, Anderson, Clh, GraunkeThakkar, Mcs, RawLock, Tas, Ticket, Ttas};

fn rounds<L: RawLock>(rounds: u64) {
    let lock = L::default();
    let lock = black_box(&lock);
    for _ in 0..rounds {
        let token = lock.lock();
        // SAFETY: acquired above.
        unsafe { lock.unlock(token) };
    }
}

type Row = (&'static str, fn(u64));

const ROWS: &[Row] = &[
    ("tas:spin", rounds::<Tas<Spin>>),
    ("tas:spin-then-park", rounds::<Tas<SpinThenPark>>),
    ("ttas:spin", rounds::<Ttas<Spin>>),
    ("ttas:spin-then-park", rounds::<Ttas<SpinThenPark>>),
    ("ticket:spin", rounds::<Ticket<Spin>>),
    ("ticket:spin-then-park", rounds::<Ticket<SpinThenPark>>),
    ("anderson:spin", rounds::<Anderson<Spin>>),
    ("anderson:spin-then-park", rounds::<Anderson<SpinThenPark>>),
    ("graunke-thakkar:spin", rounds::<GraunkeThakkar<Spin>>),
    ("graunke-thakkar:spin-then-park", rounds::<GraunkeThakkar<SpinThenPark>>),
    ("mcs:spin", rounds::<Mcs<Spin>>),
    ("mcs:spin-then-park", rounds::<Mcs<SpinThenPark>>),
    ("clh:spin", rounds::<Clh<Spin>>),
    ("clh:spin-then-park", rounds::<Clh<SpinThenPark>>),
    ("adaptive", rounds::<Adaptive>),
    ("parking_lot", |rounds| {
        let lock = parking_lot::Mutex::new(());
        let lock = black_box(&lock);
        (0..rounds).for_each(|_| drop(lock.lock()));
    }),
    ("std", |rounds| {
        let lock = std::sync::Mutex::new(());
        let lock = black_box(&lock);
        (0..rounds).for_each(|_| drop(lock.lock()));
    }),
];

fn main() {
    let mut args = std::env::args().skip(1);
    match (args.next(), args.next()) {
        (Some(name), Some(rounds)) => {
            let row = ROWS.iter().find(|row| row.0 == name).expect("a name as printed without arguments");
            row.1(rounds.parse().expect("a number of rounds"));
        }
        _ => ROWS.iter().for_each(|row| println!("{}", row.0)),
    }
}
