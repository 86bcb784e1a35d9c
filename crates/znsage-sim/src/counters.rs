// SPDX-License-Identifier: GPL-2.0-only
//! Sets of counters, and how much they grew between two moments.

/// Declares a struct of counters that only grow, all of them `u64`, with `since()`.
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* pub $field:ident: u64,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// How much each has grown since `before`, an earlier state of them.
            pub fn since(&self, before: &Self) -> Self {
                $name { $($field: self.$field - before.$field,)* }
            }
        }
    };
}
pub(crate) use counters;

#[cfg(test)]
mod tests {
    counters! {
        /// Two.
        pub struct Two {
            /// One.
            pub one: u64,
            /// The other.
            pub other: u64,
        }
    }

    #[test]
    fn each_is_compared_with_itself() {
        let (before, now) = (Two { one: 3, other: 10 }, Two { one: 5, other: 17 });
        assert_eq!(now.since(&before), Two { one: 2, other: 7 });
    }
}
