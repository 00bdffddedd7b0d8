//! Stand-in.
pub fn names() -> impl Iterator<Item = &'static str> {
    [].into_iter()
}
pub fn text(_: &str) -> Option<&'static str> {
    None
}
