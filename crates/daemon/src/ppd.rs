//! power-profiles-daemon's D-Bus interface at the level of its 0.30, under both of its names, so that desktops and their tools
//! work unchanged.
//!
//! 1. The three profiles are always there, and the one in force is always one of them: an own profile says which of the three it
//!    is to desktops. `unknown` is never told (a client of COSMIC's ended on it: cosmic-applets 787).
//! 2. Whoever holds a profile and leaves the bus has its hold released, and all are told (`ProfileReleased`).
//! 3. On the system's bus polkit decides who may choose; where it does not run, root alone may. A private bus is the test's own.
//! 4. Properties come from what the loop told last; only what changes something goes through the loop.

#![allow(missing_docs, reason = "the macro drops the docs of signals")]

use crate::asks::{Asks, Message};
use crate::brain::{Client, ProfileHold};
use crate::profile;
use crate::protocol::{Held, Reply, Request, Status};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::export::ordered_stream::OrderedStreamExt as _;
use zbus::fdo;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::Value;

/// The name that desktops ask for now, and its object.
pub const NAME: &str = "org.freedesktop.UPower.PowerProfiles";
/// The name before 0.20, still asked for.
pub const OLD_NAME: &str = "net.hadess.PowerProfiles";
const PATH: &str = "/org/freedesktop/UPower/PowerProfiles";
const OLD_PATH: &str = "/net/hadess/PowerProfiles";
/// The level of the interface.
const VERSION: &str = "0.30";
/// What polkit is asked about.
const ACTION: &str = "org.wattwise.switch-profile";

/// What was told last.
#[derive(Debug, Clone, Default, PartialEq)]
struct PpdTold {
    profile: String,
    holds: Vec<Held>,
    degraded: String,
    battery_aware: bool,
}

/// What both objects share.
#[derive(Clone)]
struct Desk {
    asks: Asks,
    told: Arc<Mutex<PpdTold>>,
    /// Clients whose leaving is waited for.
    watched: Arc<Mutex<BTreeSet<String>>>,
    /// Whether whoever asks is judged.
    judged: bool,
}

type Details = HashMap<&'static str, Value<'static>>;

impl Desk {
    fn told(&self) -> MutexGuard<'_, PpdTold> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the daemon's profile for one of the three.
    fn known(profile: &str) -> fdo::Result<&'static str> {
        let found = profile::Ppd::ALL.into_iter().find(|p| p.name() == profile);
        found.map(profile::Ppd::name).ok_or_else(|| {
            let shown = wattwise_figure::one_line(profile);
            fdo::Error::InvalidArgs(format!(
                "no profile '{shown}'; expected power-saver, balanced or performance"
            ))
        })
    }

    fn profiles() -> Vec<Details> {
        let of = |p: profile::Ppd| {
            let pairs = [("Profile", p.name()), ("Driver", "wattwise"), ("CpuDriver", "wattwise")];
            pairs.into_iter().map(|(k, v)| (k, Value::from(v))).collect()
        };
        profile::Ppd::ALL.map(of).to_vec()
    }

    fn holds(&self) -> Vec<Details> {
        let of = |h: &Held| {
            let pairs = [("ApplicationId", &h.application), ("Profile", &h.profile), ("Reason", &h.reason)];
            pairs.into_iter().map(|(k, v)| (k, Value::from(v.clone()))).collect()
        };
        self.told().holds.iter().map(of).collect()
    }

    /// Whether the sender may change the profile.
    async fn judge(&self, connection: &zbus::Connection, header: &Header<'_>) -> fdo::Result<()> {
        if !self.judged {
            return Ok(());
        }
        let denied = |why: &str| fdo::Error::AccessDenied(why.to_owned());
        let sender = header.sender().ok_or_else(|| denied("nobody asks"))?.to_string();
        let subject = ("system-bus-name", HashMap::from([("name", Value::from(sender.as_str()))]));
        let body = (subject, ACTION, HashMap::<&str, &str>::new(), 1_u32, "");
        let at = "/org/freedesktop/PolicyKit1/Authority";
        let interface = "org.freedesktop.PolicyKit1.Authority";
        let asked = connection
            .call_method(Some("org.freedesktop.PolicyKit1"), at, Some(interface), "CheckAuthorization", &body)
            .await;
        let allowed = match asked {
            Ok(reply) => {
                reply.body().deserialize::<(bool, bool, HashMap<String, String>)>().is_ok_and(|r| r.0)
            }
            Err(_) => {
                let at = "/org/freedesktop/DBus";
                let user = connection
                    .call_method(
                        Some("org.freedesktop.DBus"),
                        at,
                        Some("org.freedesktop.DBus"),
                        "GetConnectionUnixUser",
                        &sender,
                    )
                    .await;
                user.is_ok_and(|reply| reply.body().deserialize::<u32>().is_ok_and(|uid| uid == 0))
            }
        };
        match allowed {
            true => Ok(()),
            false => Err(denied("polkit does not allow that (org.wattwise.switch-profile)")),
        }
    }

    fn ask(&self, request: Request, header: &Header<'_>) -> fdo::Result<Reply> {
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        let reply = self.asks.ask(request, Client::Bus(sender));
        match reply.error {
            None => Ok(reply),
            Some((2, why)) => Err(fdo::Error::InvalidArgs(why)),
            Some((_, why)) => Err(fdo::Error::Failed(why)),
        }
    }

    async fn hold(
        &self,
        (profile, reason, application): (&str, &str, &str),
        header: &Header<'_>,
        connection: &zbus::Connection,
    ) -> fdo::Result<u32> {
        // As in power-profiles-daemon: balanced is what is there without a hold.
        if Desk::known(profile)? == profile::Ppd::Balanced.name() {
            return Err(fdo::Error::InvalidArgs("only performance and power-saver can be held".to_owned()));
        }
        self.judge(connection, header).await?;
        let cut = |text: &str| wattwise_figure::one_line(&text.chars().take(200).collect::<String>());
        let (profile, reason, application) = (profile.to_owned(), cut(reason), cut(application));
        self.watch(connection, header).await?;
        let reply = self.ask(Request::Hold { profile, reason, application }, header)?;
        reply.cookie.ok_or_else(|| fdo::Error::Failed("no number for the hold".to_owned()))
    }
}

impl Desk {
    /// Has the loop know when a client that holds something leaves the bus. Only such clients are watched: others come and go on
    /// a desktop's bus all day, and each would wake us.
    async fn watch(&self, connection: &zbus::Connection, header: &Header<'_>) -> fdo::Result<()> {
        let sender = header.sender().ok_or_else(|| fdo::Error::AccessDenied("no sender".to_owned()))?;
        let name = sender.to_string();
        let watched = || self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched().contains(&name) {
            return Ok(());
        }
        let bus = fdo::DBusProxy::new(connection).await?;
        let mut left = bus.receive_name_owner_changed_with_args(&[(0, name.as_str())]).await?;
        // It may have left before the bus had our rule.
        if !bus.name_has_owner(sender.clone().into()).await? {
            return Err(fdo::Error::AccessDenied("the client has left".to_owned()));
        }
        watched().insert(name.clone());
        let desk = self.clone();
        let follow = async move {
            while let Some(signal) = left.next().await {
                if signal.args().is_ok_and(|args| args.new_owner().is_none()) {
                    break;
                }
            }
            desk.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            desk.asks.send(Message::Gone(Client::Bus(name)));
        };
        connection.executor().spawn(follow, "a client that holds a profile").detach();
        Ok(())
    }
}

macro_rules! object {
    ($type:ident, $name:literal) => {
        struct $type(Desk);

        #[zbus::interface(name = $name)]
        impl $type {
            async fn hold_profile(
                &self,
                profile: &str,
                reason: &str,
                application_id: &str,
                #[zbus(header)] header: Header<'_>,
                #[zbus(connection)] connection: &zbus::Connection,
            ) -> fdo::Result<u32> {
                self.0.hold((profile, reason, application_id), &header, connection).await
            }

            async fn release_profile(
                &self,
                cookie: u32,
                #[zbus(header)] header: Header<'_>,
            ) -> fdo::Result<()> {
                self.0.ask(Request::Release { cookie }, &header).map(|_| ())
            }

            async fn set_action_enabled(&self, action: &str, _enabled: bool) -> fdo::Result<()> {
                let shown = wattwise_figure::one_line(action);
                Err(fdo::Error::InvalidArgs(format!("no action '{shown}'; there are none")))
            }

            #[zbus(property)]
            fn active_profile(&self) -> String {
                self.0.told().profile.clone()
            }

            #[zbus(property)]
            async fn set_active_profile(
                &self,
                profile: &str,
                #[zbus(header)] header: Option<Header<'_>>,
                #[zbus(connection)] connection: &zbus::Connection,
            ) -> zbus::Result<()> {
                let profile = Desk::known(profile)?.to_owned();
                let header = header.ok_or_else(|| fdo::Error::AccessDenied("nobody asks".to_owned()))?;
                self.0.judge(connection, &header).await?;
                Ok(self.0.ask(Request::Set { profile }, &header).map(|_| ())?)
            }

            #[zbus(property)]
            fn performance_inhibited(&self) -> String {
                String::new()
            }

            #[zbus(property)]
            fn performance_degraded(&self) -> String {
                self.0.told().degraded.clone()
            }

            #[zbus(property)]
            fn profiles(&self) -> Vec<Details> {
                Desk::profiles()
            }

            #[zbus(property)]
            fn actions(&self) -> Vec<String> {
                Vec::new()
            }

            #[zbus(property)]
            fn actions_info(&self) -> Vec<Details> {
                Vec::new()
            }

            #[zbus(property)]
            fn active_profile_holds(&self) -> Vec<Details> {
                self.0.holds()
            }

            #[zbus(property)]
            fn version(&self) -> &'static str {
                VERSION
            }

            #[zbus(property)]
            fn battery_aware(&self) -> bool {
                self.0.told().battery_aware
            }

            #[zbus(property)]
            async fn set_battery_aware(
                &self,
                on: bool,
                #[zbus(header)] header: Option<Header<'_>>,
                #[zbus(connection)] connection: &zbus::Connection,
            ) -> zbus::Result<()> {
                let header = header.ok_or_else(|| fdo::Error::AccessDenied("nobody asks".to_owned()))?;
                self.0.judge(connection, &header).await?;
                Ok(self.0.ask(Request::BatteryAware { on }, &header).map(|_| ())?)
            }

            #[zbus(signal)]
            async fn profile_released(emitter: &SignalEmitter<'_>, cookie: u32) -> zbus::Result<()>;
        }

        impl $type {
            /// Tells the bus what differs.
            fn announce(
                connection: &Connection,
                path: &str,
                now: &PpdTold,
                then: &PpdTold,
                ended: &[u32],
            ) -> zbus::Result<()> {
                let object = connection.object_server().interface::<_, $type>(path)?;
                let emitter = object.signal_emitter();
                let itself = object.get();
                zbus::block_on(async {
                    for cookie in ended {
                        $type::profile_released(emitter, *cookie).await?;
                    }
                    if now.profile != then.profile {
                        itself.active_profile_changed(emitter).await?;
                    }
                    if now.holds != then.holds {
                        itself.active_profile_holds_changed(emitter).await?;
                    }
                    if now.degraded != then.degraded {
                        itself.performance_degraded_changed(emitter).await?;
                    }
                    if now.battery_aware != then.battery_aware {
                        itself.battery_aware_changed(emitter).await?;
                    }
                    Ok(())
                })
            }
        }
    };
}

object!(Object, "org.freedesktop.UPower.PowerProfiles");
object!(OldObject, "net.hadess.PowerProfiles");

/// The objects on a bus.
pub struct Ppd {
    told: Arc<Mutex<PpdTold>>,
    news: mpsc::Sender<(PpdTold, Vec<u32>)>,
}

/// Without a word for it, it is balanced.
fn told_of(status: &Status) -> PpdTold {
    let known = profile::Ppd::ALL.iter().any(|p| p.name() == status.ppd);
    PpdTold {
        profile: if known { status.ppd.clone() } else { profile::Ppd::Balanced.name().to_owned() },
        holds: status.holds.clone(),
        degraded: String::new(),
        battery_aware: status.battery_aware,
    }
}

impl Ppd {
    /// Takes both names on a bus: `system`, or an address.
    ///
    /// # Errors
    /// No bus, or another program has a name.
    pub fn begin(bus: &str, asks: &Asks) -> zbus::Result<Ppd> {
        let told = Arc::new(Mutex::new(told_of(&Status { battery_aware: true, ..Status::default() })));
        let judged = bus == "system";
        let desk = Desk { asks: asks.clone(), told: Arc::clone(&told), watched: Arc::default(), judged };
        let builder = match judged {
            true => Builder::system()?,
            false => Builder::address(bus)?,
        };
        let connection =
            builder.serve_at(PATH, Object(desk.clone()))?.serve_at(OLD_PATH, OldObject(desk))?.build()?;
        for name in [NAME, OLD_NAME] {
            let flags = [fdo::RequestNameFlags::DoNotQueue].into_iter().collect();
            if connection.request_name_with_flags(name, flags).is_err() {
                return Err(zbus::Error::Failure(format!(
                    "{name} is another program's, such as power-profiles-daemon or tuned-ppd: stop it first"
                )));
            }
        }
        let (news, heard) = mpsc::channel::<(PpdTold, Vec<u32>)>();
        let then = told_of(&Status { battery_aware: true, ..Status::default() });
        let spawned =
            std::thread::Builder::new().name("bus".into()).spawn(move || announce(&connection, then, &heard));
        spawned.map_err(|e| zbus::Error::Failure(e.to_string()))?;
        Ok(Ppd { told, news })
    }

    /// What is in force now, and holds that have ended.
    pub fn tell(&self, status: &Status, ended: &[ProfileHold]) {
        let now = told_of(status);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != now || !ended.is_empty() {
            told.clone_from(&now);
            _ = self.news.send((now, ended.iter().map(|h| h.cookie).collect()));
        }
    }
}

fn announce(connection: &Connection, mut then: PpdTold, heard: &mpsc::Receiver<(PpdTold, Vec<u32>)>) {
    for (now, ended) in heard {
        _ = Object::announce(connection, PATH, &now, &then, &ended);
        _ = OldObject::announce(connection, OLD_PATH, &now, &then, &ended);
        then = now;
    }
}
