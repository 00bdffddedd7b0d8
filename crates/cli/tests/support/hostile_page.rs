//! What a browser's tokenizer makes of a page.

use html5ever::tokenizer::{BufferQueue, TagToken, Token, TokenSink, TokenSinkResult, Tokenizer};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How often each tag stands in a page, and what of it would act by itself.
#[derive(Default)]
struct Tags(RefCell<BTreeMap<String, usize>>);

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if let TagToken(tag) = token {
            let acts = tag.attrs.iter().any(|a| a.name.local.starts_with("on"));
            assert!(!acts && !["img", "iframe", "object"].contains(&&*tag.name), "{tag:?}");
            *self.0.borrow_mut().entry(tag.name.to_string()).or_default() += 1;
        }
        TokenSinkResult::Continue
    }
}

pub(crate) fn tags(html: &str) -> BTreeMap<String, usize> {
    // What scripts hold is no element; that none ends early is seen by how many there are.
    let mut parts = html.split("<script");
    let mut rest = parts.next().unwrap().to_owned();
    let scripts: Vec<&str> = parts.map(|p| p.split_once("</script>").unwrap().1).collect();
    rest += &scripts.concat();
    let tokenizer = Tokenizer::new(Tags::default(), Default::default());
    let queue = BufferQueue::default();
    queue.push_back(rest.into());
    _ = tokenizer.feed(&queue);
    tokenizer.end();
    let mut all = tokenizer.sink.0.take();
    all.insert("script".to_owned(), scripts.len());
    // A name breaks between its parts, of which a stranger's may have more.
    all.remove("wbr");
    all
}
