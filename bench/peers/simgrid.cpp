// bursts-v1 in SimGrid: README.md has the rules.
//
// One host whose cores share a clock, an actor for each task and one for the governor. Watts are the energy plugin's. Two
// ways to share the cores: as the rules have it, first come first served, by a semaphore of as many places as there are
// cores; or SimGrid's own, in which everything that is ready gets an equal part of the host (`--queue shared`).

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <simgrid/plugins/energy.h>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

namespace s4u = simgrid::s4u;

namespace {

constexpr double kCyclesPerSecond = 3e9;
constexpr double kGovernorPeriod = 0.010;
constexpr double kMachineWatts = 10.0;
/// Relative speeds, fastest first: a P-state is an index.
constexpr std::array<double, 5> kSpeeds{1.0, 0.85, 0.70, 0.55, 0.40};

double busy_core_watts(double speed) {
  return 10.0 * speed * speed * speed + 2.0;
}

/// xorshift64*, its first eight draws thrown away.
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {
    for (int i = 0; i < 8; i++)
      unit();
  }
  double unit() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<double>((state_ * 2685821657736338717ULL) >> 11) / 9007199254740992.0;
  }
  double between(double low, double high) { return low + unit() * (high - low); }

private:
  std::uint64_t state_;
};

struct Options {
  int cpus = 4;
  int tasks = 8;
  double seconds = 1000.0;
  std::uint64_t seed = 1;
  bool fifo = true;
};

/// What the tasks and the governor have in common.
class Job {
public:
  Job(const Options& options, s4u::Host* host)
      : options_(options), host_(host), cores_(s4u::Semaphore::create(options.cpus)) {}

  void task(int number) {
    Random random(options_.seed + number);
    while (true) {
      bursts++;
      const double cycles = random.between(0.0002, 0.002) * kCyclesPerSecond;
      if (options_.fifo)
        cores_->acquire();
      account(+1);
      s4u::this_actor::execute(cycles);
      account(-1);
      if (options_.fifo)
        cores_->release();
      s4u::this_actor::sleep_for(random.between(0.001, 0.010));
    }
  }

  void govern() {
    // By the clock's multiples: a sum of sleeps would drift.
    while (true) {
      s4u::this_actor::sleep_until(static_cast<double>(ticks + 1) * kGovernorPeriod);
      ticks++;
      account(0);
      const double load = busy_core_s_ / (options_.cpus * kGovernorPeriod);
      busy_core_s_ = 0.0;
      const unsigned long next = wanted(load);
      if (next != host_->get_pstate())
        host_->set_pstate(next);
    }
  }

  long bursts = 0;
  long ticks = 0;

private:
  static unsigned long wanted(double load) {
    if (load <= 0.8)
      for (std::size_t p = kSpeeds.size(); p-- > 0;)
        if (kSpeeds[p] >= load * 1.25)
          return p;
    return 0;
  }

  /// Adds up the busy cores' time until now; `change` more bursts execute from here on.
  void account(int change) {
    const double now = s4u::Engine::get_clock();
    busy_core_s_ += std::min(executing_, options_.cpus) * (now - accounted_);
    accounted_ = now;
    executing_ += change;
  }

  const Options options_;
  s4u::Host* const host_;
  const s4u::SemaphorePtr cores_;
  int executing_ = 0;
  double busy_core_s_ = 0.0;
  double accounted_ = 0.0;
};

[[noreturn]] void usage(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s: %s\nusage: %s [--cpus N] [--tasks N] [--seconds T] [--seed N] [--queue fifo|shared]\n",
               program, why.c_str(), program);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc)
      usage(argv[0], flag + ": expected a value");
    const std::string value = argv[i + 1];
    try {
      if (flag == "--cpus")
        options.cpus = std::stoi(value);
      else if (flag == "--tasks")
        options.tasks = std::stoi(value);
      else if (flag == "--seconds")
        options.seconds = std::stod(value);
      else if (flag == "--seed")
        options.seed = std::stoull(value);
      else if (flag == "--queue" && (value == "fifo" || value == "shared"))
        options.fifo = value == "fifo";
      else
        usage(argv[0], flag + " " + value + ": not known");
    } catch (const std::logic_error&) {
      usage(argv[0], flag + " " + value + ": expected a number");
    }
  }
  if (options.cpus < 1 || options.tasks < 1 || options.seconds <= 0.0 || options.seed < 1)
    usage(argv[0], "expected positive numbers");
  return options;
}

// SimGrid 4.1 has these under other names, and 4.3 no longer under the old ones.
#if SIMGRID_VERSION >= 40100
s4u::Host* add_host(s4u::Engine& engine, const std::vector<double>& cycles_per_second) {
  return engine.get_netzone_root()->add_host("host", cycles_per_second);
}
template <class Code> void add_actor(s4u::Host* host, const char* name, Code code) { host->add_actor(name, code); }
#else
s4u::Host* add_host(s4u::Engine&, const std::vector<double>& cycles_per_second) {
  return s4u::create_full_zone("zone")->create_host("host", cycles_per_second);
}
template <class Code> void add_actor(s4u::Host* host, const char* name, Code code) { s4u::Actor::create(name, host, code); }
#endif

s4u::Host* make_host(s4u::Engine& engine, int cpus) {
  std::vector<double> cycles_per_second;
  std::string watts;
  for (const double speed : kSpeeds) {
    cycles_per_second.push_back(speed * kCyclesPerSecond);
    // Nothing executes, the least that does, all cores busy.
    const std::string idle = std::to_string(kMachineWatts);
    watts += (watts.empty() ? "" : ",") + idle + ":" + idle + ":" +
             std::to_string(kMachineWatts + cpus * busy_core_watts(speed));
  }
  auto* host = add_host(engine, cycles_per_second);
  host->set_core_count(cpus);
  host->set_property("wattage_per_state", watts);
  host->seal();
  engine.get_netzone_root()->seal();
  return host;
}

} // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  // The engine would take the job's arguments for its own; and of what it says, only what is wrong.
  int engine_argc = 2;
  std::string quiet = "--log=root.thresh:warning";
  char* engine_args[] = {argv[0], quiet.data(), nullptr};
  char** engine_argv = engine_args;
  sg_host_energy_plugin_init();
  s4u::Engine engine(&engine_argc, engine_argv);
  s4u::Host* host = make_host(engine, options.cpus);
  Job job(options, host);
  for (int i = 0; i < options.tasks; i++)
    add_actor(host, "task", [&job, i] { job.task(i); });
  add_actor(host, "governor", [&job] { job.govern(); });

  const auto start = std::chrono::steady_clock::now();
  engine.run_until(options.seconds);
  const double joules = sg_host_get_consumed_energy(host);
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const long events = 2 * job.bursts + job.ticks;
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  std::printf("{\"peer\": \"simgrid\", \"version\": \"%d.%d\", \"queue\": \"%s\", "
              "\"shape\": {\"cpus\": %d, \"tasks\": %d, \"seconds\": %g}, \"wall_s\": %.6f, \"bursts\": %ld, "
              "\"ticks\": %ld, \"events\": %ld, \"events_per_s\": %.1f, \"joules\": %.3f}\n",
              major, minor, options.fifo ? "fifo" : "shared", options.cpus, options.tasks, options.seconds, wall_s,
              job.bursts, job.ticks, events, events / wall_s, joules);
  std::fflush(stdout);
  // The actors never end, and the engine's end would wait for them.
  _exit(0);
}
