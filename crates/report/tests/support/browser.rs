//! A headless Chromium by its DevTools protocol: pages, real mouse events, screenshots, and
//! everything that a page complains about or asks the network for.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

const PATIENCE: Duration = Duration::from_secs(60);

/// One browser with its own empty profile; gone when dropped.
pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    profile: PathBuf,
    last_id: u64,
    target: Option<String>,
    events: Vec<Value>,
}

/// How a reader looks at a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

impl Browser {
    /// `None` when there is no Chromium, said on standard error; under CI that is a failure.
    pub(crate) fn start(name: &str) -> Option<Browser> {
        let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
            .into_iter()
            .find(|p| Path::new(p).exists());
        let Some(program) = program else {
            assert!(
                std::env::var_os("CI").is_none(),
                "Chromium is missing; CI must install it (Debian: chromium)"
            );
            eprintln!("skipped: no Chromium on this machine (Debian: chromium)");
            return None;
        };
        let profile =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&profile);
        std::fs::create_dir_all(&profile).expect("a folder for the profile");
        let child = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Chromium starts");

        // Chromium writes the port that it chose, and its path, once it listens.
        let start = Instant::now();
        let (port, path) = loop {
            let text = std::fs::read_to_string(profile.join("DevToolsActivePort")).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n').filter(|(_, path)| !path.is_empty()) {
                break (port.to_owned(), path.trim().to_owned());
            }
            assert!(start.elapsed() < PATIENCE, "Chromium does not say where it listens");
            std::thread::sleep(Duration::from_millis(20));
        };
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("Chromium listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        let (socket, _) =
            tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream).expect("a handshake");
        Some(Browser { child, socket, profile, last_id: 0, target: None, events: Vec::new() })
    }

    /// Opens a file and waits until it is loaded and drawn.
    pub(crate) fn open(&mut self, file: &Path, view: View) -> Page<'_> {
        if let Some(last) = self.target.take() {
            self.call(None, "Target.closeTarget", json!({"targetId": last}));
        }
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank"}));
        self.target = target["targetId"].as_str().map(str::to_owned);
        let attached = self.call(
            None,
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        self.events.clear();
        let mut page = Page { browser: self, session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.resize(view);
        page.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        page.wait("document.readyState === 'complete'");
        page.settle();
        page
    }

    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut request = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        self.socket.send(Message::text(request.to_string())).expect("Chromium takes requests");
        loop {
            let message = self.socket.read().unwrap_or_else(|e| panic!("{method}: {e}"));
            let Message::Text(text) = message else { continue };
            let message: Value = serde_json::from_str(&text).expect("Chromium answers in JSON");
            if message["id"] == self.last_id {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let request = json!({"id": u32::MAX, "method": "Browser.close"});
        let _ = self.socket.send(Message::text(request.to_string()));
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its helpers may still write while they end.
        for _ in 0..50 {
            if std::fs::remove_dir_all(&self.profile).is_ok() || !self.profile.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// One open page.
pub(crate) struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
}

impl Page<'_> {
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    pub(crate) fn resize(&mut self, view: View) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": view.width < 600}),
        );
        let scheme = if view.dark { "dark" } else { "light" };
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// The value of an expression; a promise is awaited.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    pub(crate) fn wait(&mut self, condition: &str) {
        let start = Instant::now();
        while self.eval(condition) != Value::Bool(true) {
            assert!(start.elapsed() < PATIENCE, "never came true: {condition}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Two frames later, whatever was to be drawn is drawn.
    pub(crate) fn settle(&mut self) {
        self.eval("new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 150))");
    }

    /// Puts the element in view and gives its box: left, top, width, height.
    pub(crate) fn place(&mut self, selector: &str) -> [f64; 4] {
        let quoted = Value::from(selector);
        let rect = self.eval(&format!(
            "(() => {{ const e = document.querySelector({quoted});\
             e.scrollIntoView({{block: 'center', behavior: 'instant'}});\
             const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()"
        ));
        serde_json::from_value(rect).unwrap_or_else(|_| panic!("{selector} has no place"))
    }

    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64, clicks: u32) {
        let button = if kind == "mouseMoved" && clicks == 0 { "none" } else { "left" };
        let buttons = u32::from(kind != "mouseReleased" && button == "left");
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": clicks}),
        );
    }

    pub(crate) fn click(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        let (x, y) = (left + width / 2.0, top + height / 2.0);
        self.mouse("mouseMoved", x, y, 0);
        self.mouse("mousePressed", x, y, 1);
        self.mouse("mouseReleased", x, y, 1);
    }

    /// Presses at one share of an element's width, moves, releases at another.
    pub(crate) fn drag(&mut self, selector: &str, from: f64, to: f64) {
        let [left, top, width, height] = self.place(selector);
        let y = top + height / 2.0;
        self.mouse("mouseMoved", left + width * from, y, 0);
        self.mouse("mousePressed", left + width * from, y, 1);
        for step in 1..=8 {
            self.mouse("mouseMoved", left + width * (from + (to - from) * f64::from(step) / 8.0), y, 1);
        }
        self.mouse("mouseReleased", left + width * to, y, 1);
        self.settle();
    }

    pub(crate) fn double_click(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        let (x, y) = (left + width / 2.0, top + height / 2.0);
        self.mouse("mouseMoved", x, y, 0);
        for clicks in [1, 2] {
            self.mouse("mousePressed", x, y, clicks);
            self.mouse("mouseReleased", x, y, clicks);
        }
        self.settle();
    }

    /// A PNG of the whole page, or of what is in view.
    pub(crate) fn screenshot(&mut self, file: &Path, whole: bool) -> io::Result<()> {
        use base64::Engine as _;
        let shot =
            self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": whole}));
        let png = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap_or_default());
        std::fs::write(file, png.map_err(io::Error::other)?)
    }

    /// What the page would look like on paper.
    pub(crate) fn pdf(&mut self, file: &Path) -> io::Result<()> {
        use base64::Engine as _;
        let pdf = self.call("Page.printToPDF", json!({"printBackground": false, "preferCSSPageSize": true}));
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(pdf["data"].as_str().unwrap_or_default());
        std::fs::write(file, bytes.map_err(io::Error::other)?)
    }

    /// Errors and warnings that the page made, and requests beyond its own file.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // One more answer drains what is on the way.
        self.settle();
        let mut out = Vec::new();
        for event in self.browser.events.iter().filter(|e| e["sessionId"] == self.session.as_str()) {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => out.push(format!("exception: {}", params["exceptionDetails"])),
                "Runtime.consoleAPICalled" => out.push(format!("console: {params}")),
                "Log.entryAdded" => out.push(format!("log: {}", params["entry"])),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    if !url.starts_with("file://") && !url.starts_with("data:") {
                        out.push(format!("request: {url}"));
                    }
                }
                _ => {}
            }
        }
        out
    }
}
