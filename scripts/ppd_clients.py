"""What scripts/ppd-clients.sh runs: ppd_clients.py BIN TEST_FILE, or ppd_clients.py BIN polkit."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import dbus
import dbusmock

BIN = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
OLD = ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles")
NEW = ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles")
CPU = "sys/devices/system/cpu"


def machine(work):
    """A folder with as much of a machine as a profile sets."""
    for path, text in {
        f"{CPU}/online": "0",
        f"{CPU}/possible": "0",
        f"{CPU}/present": "0",
        f"{CPU}/cpu0/topology/core_id": "0",
        f"{CPU}/cpu0/topology/physical_package_id": "0",
        f"{CPU}/cpufreq/policy0/affected_cpus": "0",
        f"{CPU}/cpufreq/policy0/related_cpus": "0",
        f"{CPU}/cpufreq/policy0/cpuinfo_min_freq": "400000",
        f"{CPU}/cpufreq/policy0/cpuinfo_max_freq": "4400000",
        f"{CPU}/cpufreq/policy0/scaling_min_freq": "400000",
        f"{CPU}/cpufreq/policy0/scaling_max_freq": "4400000",
        f"{CPU}/cpufreq/policy0/scaling_driver": "amd-pstate-epp",
        f"{CPU}/cpufreq/policy0/scaling_governor": "powersave",
        f"{CPU}/cpufreq/policy0/scaling_available_governors": "performance powersave",
        f"{CPU}/cpufreq/policy0/energy_performance_preference": "balance_performance",
        f"{CPU}/cpufreq/policy0/energy_performance_available_preferences": "default performance balance_performance balance_power power",
    }.items():
        path = os.path.join(work, "machine", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text + "\n")
    return os.path.join(work, "machine")


def wattwised(work, bus, stdout=subprocess.DEVNULL):
    places = [w for f in ("journal", "state", "socket") for w in (f"--{f}", os.path.join(work, f))]
    root = machine(work)
    command = [f"{BIN}/wattwised", "--root", root, "--config", "/no/such", "--bus", bus, *places]
    return subprocess.Popen(command, stdout=stdout, stderr=sys.stderr)


def until(what, is_so):
    for _ in range(300):
        if is_so():
            return
        time.sleep(0.05)
    sys.exit(f"ppd-clients: {what}")


def preference(work):
    with open(os.path.join(work, "machine", CPU, "cpufreq/policy0/energy_performance_preference")) as file:
        return file.read().strip()


def dbusmocks_tests(path):
    """Its own file, in which our daemon stands where its template would."""

    def in_place_of(self, template, _parameters=None, stdout=None):
        work = tempfile.mkdtemp(prefix="ppd-clients-")
        self.addCleanup(shutil.rmtree, work)
        daemon = wattwised(work, os.environ["DBUS_SYSTEM_BUS_ADDRESS"], stdout)
        name, at = NEW if template.startswith("upower") else OLD
        until(f"{name} is on the bus", lambda: self.dbus_con.name_has_owner(name))
        print(f"({template}: wattwised as {name})")
        # The template, a mock, takes calls that name no interface; power-profiles-daemon and we do not.
        return daemon, dbus.Interface(self.dbus_con.get_object(name, at), name)

    dbusmock.DBusTestCase.spawn_server_template = in_place_of
    spec = importlib.util.spec_from_file_location("theirs", path)
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    suite = unittest.defaultTestLoader.loadTestsFromModule(theirs)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    if not result.wasSuccessful() or result.skipped or result.testsRun < 4:
        sys.exit("ppd-clients: dbusmock's tests do not pass")


BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={work}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><deny own="*"/><deny send_type="method_call"/><allow send_type="signal"/>
<allow send_requested_reply="true" send_type="method_return"/><allow send_requested_reply="true" send_type="error"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
<allow send_destination="org.freedesktop.DBus"/></policy>
<include>/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf</include>
<include>{ours}</include></busconfig>
"""


def choose(user, profile):
    """As that user, by another's client; what it says."""
    command = ["setpriv", f"--reuid={user}", "--clear-groups", "busctl", "--system", "set-property"]
    return subprocess.run([*command, *NEW, NEW[0], "ActiveProfile", "s", profile], capture_output=True, text=True, check=False)


def polkit():
    """A bus of the system's kind, polkit's daemon on it, and users that it lets and does not let choose."""
    work = tempfile.mkdtemp(prefix="ppd-clients-")
    os.chmod(work, 0o755)
    started = []
    try:
        # The action as it is shipped; an administrator's rule for a user.
        for folder in ("actions", "rules.d"):
            os.mkdir(f"{work}/{folder}")
        shutil.copy(f"{HERE}/../packaging/polkit/org.wattwise.policy", f"{work}/actions")
        with open(f"{work}/rules.d/10-test.rules", "w") as file:
            file.write("polkit.addRule(function(action, subject) {\n"
                       '  if (action.id == "org.wattwise.switch-profile" && subject.user == "games") return polkit.Result.YES;\n});\n')
        os.chmod(f"{work}/rules.d", 0o755)
        mount = ["mount", "--bind"]
        subprocess.run([*mount, f"{work}/actions", "/usr/share/polkit-1/actions"], check=True)
        subprocess.run([*mount, f"{work}/rules.d", "/etc/polkit-1/rules.d"], check=True)
        with open(f"{work}/bus.conf", "w") as file:
            # As the system's own bus: who may own a name and who may call it is in what packages ship.
            file.write(BUS.format(work=work, ours=os.path.abspath(f"{HERE}/../packaging/dbus/org.wattwise.conf")))
        started.append(subprocess.Popen(["dbus-daemon", f"--config-file={work}/bus.conf", "--nofork"]))
        until("the bus listens", lambda: os.path.exists(f"{work}/bus"))
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={work}/bus"
        started.append(subprocess.Popen(["/usr/lib/polkit-1/polkitd", "--no-debug"]))
        bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
        until("polkit is on the bus", lambda: bus.name_has_owner("org.freedesktop.PolicyKit1"))
        started.append(wattwised(work, "system"))
        until("wattwised is on the bus", lambda: bus.name_has_owner(NEW[0]))
        before = preference(work)
        refused = choose(65534, "power-saver")
        if refused.returncode == 0 or "Access denied" not in refused.stderr or preference(work) != before:
            sys.exit(f"ppd-clients: polkit lets nobody choose: {refused}")
        for user, profile, preferred in ((5, "power-saver", "power"), (0, "performance", "performance")):
            allowed = choose(user, profile)
            if allowed.returncode or preference(work) != preferred:
                sys.exit(f"ppd-clients: user {user} may choose and cannot: {allowed} {preference(work)}")
        print("ppd-clients: polkit's daemon refuses nobody's choice, takes games' by an administrator's rule, and root's")
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    polkit() if sys.argv[2] == "polkit" else dbusmocks_tests(sys.argv[2])
