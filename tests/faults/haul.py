# SPDX-License-Identifier: MIT
#
# haul.py - long work, and what grows with it
#
# usage: haul.py BENCH HAUL SRC WORK [--minutes M] [--opens N] [--launches N] [--parts A,B]
#
# decode: one open model answers for M minutes. open: a model is opened, answers and is
# closed N times in one process, in four ways. serve, pages, windows, states: a server whose
# model keeps pages alone (the first two), windows, recurrent states, and clients of all kinds
# (clients.py) share M minutes. There must be preemptions, and checkpoints made, restored and dropped. In each sixtieth the idle server is looked at: it holds no request,
# connection or memory of one, and each page and checkpoint is free or keeps a prefix.
# sweep: nano points, as many launches as a sweep of 12 hours makes. Memory,
# descriptors, threads, files of TMPDIR, memory groups and CPU time are read some sixty
# times and written to WORK/curve.csv. Between the second fifth and the last one nothing
# may grow, and neither may the CPU time of a token, model, launch or request (MAX_SLOWER),
# as it was while the machine was this work's own. Answers are the same from the first to
# the last, and every row is there once. judge: curves that drift are found.
# Prints a line for each part; ends with 1 if a promise is broken. Under a sanitizer
# (SANITIZE), which takes memory itself, servers are judged by what they count alone.
import argparse
import collections
import contextlib
import csv
import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "serve"))
from clients import KINDS, TOO_LONG, Client  # noqa: E402
from server import THINKS, Server  # noqa: E402

N_SAMPLES = 60
FIELDS = ["part", "seconds", "work", "rss_kib", "descriptors", "threads", "files", "groups", "cpu_s", "others_s"]
MAX_GROWTH = 0.01     # of memory, from the second fifth to the last
SLACK_KIB = 64
ROW_KIB = 9           # a sweep holds its rows, 4.5 KiB each; a list that is doubled leaves as much
# How much more CPU time a piece of work may take in the last fifth than in the second, as
# far as others took less than MAX_OTHERS of one CPU: who shares a core or a cache, or
# lets threads wait for each other, costs CPU time, too, also in another virtual machine.
# A server's requests are of fifteen kinds, which take turns.
MAX_SLOWER = {"tokens": 0.25, "models": 0.25, "launches": 0.25, "requests": 0.3}
MAX_OTHERS = 0.1
# A sweep finds out from all its rows, after each launch, what is due: some 9 µs a row.
ROW_US = 12
MIN_CPU_S = 1         # of a fifth, for a mean that means something
BASE = 12 * 3600 / 15  # launches of a sweep of 12 hours, of 10 s and a load of 5 s each


def tree(pid):
    """The process and what it has started."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                for child in f.read().split():
                    found += tree(int(child))
    except OSError:
        pass
    return found


TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """CPU time of a process, and of what it has started and that has ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15])) / TICKS
    except OSError:
        return 0


def machine_s():
    """CPU time that the whole machine has spent."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, stolen = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + soft + stolen) / TICKS


def usage(pids):
    """Resident KiB, descriptors and threads of processes."""
    total = collections.Counter()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as f:
                state = dict(line.split(":", 1) for line in f)
            n = len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
        if "VmRSS" in state:
            total.update(rss=int(state["VmRSS"].split()[0]), fds=n, threads=int(state["Threads"]))
    return total["rss"], total["fds"], total["threads"]


class Haul:
    def __init__(self, args):
        self.args = args
        self.tmp = os.path.join(args.work, "tmp")
        self.model = os.path.join(args.src, "tests/data/models/stories260K-f32.gguf")
        self.broken, self.n_wrong = [], 0
        os.makedirs(self.tmp, exist_ok=True)
        os.environ.update(TMPDIR=self.tmp, SLMBENCH_LOCK="none", SLMBENCH_PROGRESS="none", BENCH=args.bench,
                          SLMBENCH_CACHE=os.path.join(args.work, "cache"), LC_ALL="C",
                          GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
        os.chdir(args.work)
        self.csv = open("curve.csv", "w", newline="")
        self.writer = csv.writer(self.csv, lineterminator="\n")
        self.writer.writerow(FIELDS)

    def groups(self):
        own = tuple(f"slmbench.{pid}." for pid in self.pids)
        return sum(n.startswith(own) for _, names, _ in os.walk("/sys/fs/cgroup") for n in names)

    def begin(self, part, pid):
        self.part, self.pids, self.start, self.curve = part, {pid}, time.monotonic(), []

    def sample(self, pids, work):
        self.pids.update(pids)
        rss, fds, threads = usage(pids)
        if rss < 1000:
            return  # it has just begun or ended
        self.add(round(time.monotonic() - self.start, 3), work, rss, fds, threads, sum(map(cpu_s, pids)),
                 machine_s() - sum(os.times()[:2]))

    def add(self, seconds, work, rss, fds, threads, cpu, machine):
        files = sum(len(names) for _, _, names in os.walk(self.tmp))
        self.curve.append((self.part, seconds, work, rss, fds, threads, files, self.groups(), cpu,
                           round(machine - cpu, 3)))
        self.writer.writerow(self.curve[-1])
        self.csv.flush()

    def breaks(self, *words):
        self.n_wrong += 1
        self.broken.append(" ".join(map(str, words)))
        print("BROKEN", self.part + ":", *words, flush=True)

    def judge(self, unit, row_kib=0.0, row_us=0.0):
        """Compares the last fifth of the curve with the second one; prints a line."""
        n = len(self.curve)
        if n < 5:
            self.breaks(f"only {n} samples")
            return
        early, late = self.curve[n // 5:2 * n // 5], self.curve[-(n // 5):]

        def median(rows, column):
            return statistics.median(r[FIELDS.index(column)] for r in rows)
        before, after = median(early, "rss_kib"), median(late, "rss_kib")
        more = median(late, "work") - median(early, "work")
        if after > before * (1 + MAX_GROWTH) + SLACK_KIB + row_kib * more:
            self.breaks(f"memory grew from {before:.0f} to {after:.0f} KiB")
        # What a moment takes, as a launch that begins between two looks, is not lost: the lowest counts.
        of = min if unit == "launches" else max
        for column in ("descriptors", "threads", "files", "groups"):
            first, last = (of(r[FIELDS.index(column)] for r in rows) for rows in (early, late))
            if last > first:
                self.breaks(f"more {column}: {first}, then {last}")
        left = os.listdir(self.tmp)
        if left or self.groups():
            self.breaks(f"{self.groups()} groups and files are left: {left[:4]}")
        costs = [self.cost(n // 5, 2 * n // 5), self.cost(n - n // 5, n)]
        if all(costs) and costs[1] > costs[0] * (1 + MAX_SLOWER[unit]) + row_us * more / 1000:
            self.breaks(f"CPU time of a thousand {unit} grew from {costs[0]:.4g} to {costs[1]:.4g} s")
        first, last = self.curve[0], self.curve[-1]
        rates = [(b[2] - a[2]) / max(b[1] - a[1], 1e-9) for a, b in
                 ((early[0], self.curve[2 * n // 5]), (self.curve[-(n // 5) - 1], last))]
        print(f"{self.part:7} {last[1]:7.0f} s {last[2]:9} {unit:9} RSS {first[3]} KiB first, "
              f"{before:.0f} early, {after:.0f} late, {max(r[3] for r in self.curve)} at most; descriptors "
              f"{last[4]}, threads {last[5]}; {rates[0]:.1f} {unit}/s early, {rates[1]:.1f} late; CPU time of a thousand: "
              + (f"{costs[0]:.4g} s early, {costs[1]:.4g} late" if all(costs) else "too little of it was alone on the machine"), flush=True)

    def cost(self, begin, end):
        """CPU seconds of a thousand pieces of work between two samples, while others let it; None: that
        was too short."""
        at = [[r[FIELDS.index(name)] for name in ("seconds", "work", "cpu_s", "others_s")]
              for r in self.curve[begin:end]]
        steps = [[after - before for before, after in zip(*pair)] for pair in zip(at, at[1:])]
        alone = [(work, cpu) for seconds, work, cpu, others in steps if others <= MAX_OTHERS * seconds]
        work, cpu = map(sum, zip(*alone)) if alone else (0, 0)
        return 1000 * cpu / work if work and cpu >= MIN_CPU_S else None

    def follow(self, part, unit, arguments, seconds, work, row_kib, row_us):
        """Runs it to its end and samples it, between launches where that is soon; work() is what it
        has done so far."""
        with open("out", "w") as out, open("err", "w") as err:
            child = subprocess.Popen(arguments, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        self.begin(part, child.pid)
        try:
            while child.poll() is None:
                end = time.monotonic() + 1
                while len(pids := tree(child.pid)) > 1 and time.monotonic() < end:
                    self.pids.update(pids)
                    time.sleep(0.001)
                self.sample([child.pid], work())
                time.sleep(max(seconds / N_SAMPLES, 0.01))
        finally:
            child.kill()
        if child.returncode:
            self.breaks(f"ended with {child.returncode}: {open('err').read()[-300:]}")
        self.judge(unit, row_kib, row_us)

    def engine(self, part, unit, amount, every):
        """Runs haul, which reads its own use where nothing is under way."""
        with open("out", "w") as out, open("err", "w") as err:
            child = subprocess.Popen([self.args.haul, part, self.model, str(amount), str(every)], stdout=out,
                                     stderr=err, stdin=subprocess.DEVNULL)
        self.begin(part, child.pid)
        code = child.wait()
        with open("out") as f:
            for line in f:
                seconds, work, rss, fds, threads, cpu, machine = line.split()
                self.add(float(seconds), int(work), int(rss), int(fds), int(threads), float(cpu), float(machine))
        if code:
            self.breaks(f"ended with {code}: {open('err').read()[-300:]}")
        self.judge(unit)

    def decode(self):
        seconds = 60 * self.args.minutes
        self.engine("decode", "tokens", seconds, seconds / N_SAMPLES)

    def open(self):
        self.engine("open", "models", self.args.opens, self.args.opens * 4e-4)

    def judge_drifts(self):
        """Whether the judge finds what grows, and nothing where other programs take CPUs."""
        for growth, busy in ((1.0, False), (1.0, True), (1.3, False), (1.3, True)):
            self.begin("judge", os.getpid())
            self.pids, n_before, cpu = set(), len(self.broken), 0.0
            others = 0.0
            for i in range(N_SAMPLES):
                disturbed = busy and i % 3
                others += 0.7 if disturbed else 0.01
                cpu += growth ** (i / N_SAMPLES * 5 / 3) * (1.4 if disturbed else 1)
                self.add(i * (4 if busy and i > 30 else 1), 1000 * (i + 1), 9000, 4, 1, cpu, cpu + others)
            with contextlib.redirect_stdout(io.StringIO()):
                self.judge("tokens")
            found, self.broken = self.broken[n_before:], self.broken[:n_before]
            if bool(found) != (growth > 1):
                self.breaks(f"growth {growth}, other programs {busy}: {found}")
        if not self.broken:
            print("judge   of four curves those two that drift are found", flush=True)

    def sweep(self):
        shutil.rmtree("sw", ignore_errors=True)
        each = max(1, round(self.args.launches / 4))
        # Five sixths of a launch of nano would be the roof, whose memory ends with its process.
        os.environ.update(SLMBENCH_PROBE="rough", SLMBENCH_LLC="64M")
        line = (f"sweep -m nano:Q4_0 -m nano:Q8_0 --threads 1 --ctx 0,16 --prefill none -n 2 --budget 0.01"
                f" --no-charts --no-probe --repeats 0 --launches {each} --max-launches {each} -o sw")

        def rows():
            try:
                with open("sw/sweep.csv") as f:
                    return max(0, sum(1 for _ in f) - 1)
            except OSError:
                return 0
        self.follow("sweep", "launches", [self.args.bench, *line.split()], 0.03 * 4 * each, rows, ROW_KIB, ROW_US)
        with open("sw/sweep.csv", newline="") as f:
            keys = [(r["point"], r["attempt"]) for r in csv.DictReader(f)]
        if len(keys) != 4 * each or len(set(keys)) != len(keys):
            self.breaks(f"{len(keys)} rows, {len(set(keys))} different, not {4 * each}")

    # ---- servers at full load --------------------------------------------------------

    # Fewer pages than all contexts take, so that some answers wait for others, or are dropped
    # and computed again; not of stories260K, whose context is two pages.
    SERVERS = {
        "serve": ("stories260K-f32", "512", "--kv-memory", "1220K"),
        "pages": ("zoo/granite", "1024", "--kv-memory", "700K"),
        "windows": ("zoo/gpt-oss-mxfp4", "1024", "--kv-memory", "2680K", "--speculate", "lookup"),
        "states": ("zoo/qwen35-mtp", "1024", "--kv-memory", "1220K", "--speculate", "mtp"),
    }
    COUNTED = ["requests_completed_total", "requests_cancelled_total", "preemptions_total", "checkpoints_made_total",
               "checkpoints_restored_total", "checkpoints_dropped_total"]
    # What it counts while it answers nothing but the request for its counters.
    IDLE = {"slm_requests_running": 0, "slm_requests_waiting": 0, "slm_http_connections": 1, "slm_http_requests": 1,
            "slm_http_body_bytes": 0, "slm_answer_bytes": 0, "slm_schema_bytes": 0,
            "slm_stream_bytes": 0}

    def serve(self, part):
        with open("template", "w") as f:
            f.write(THINKS)
        name, ctx, *options = self.SERVERS[part]
        server = Server(os.path.join(self.args.src, f"tests/data/models/{name}.gguf"), "--sequences", "4",
                        "--ctx", ctx, "--chat-template", "./template", *options)
        self.begin(part, server.child.pid)
        self.n_wrong = 0
        known = {} if part == "serve" else None  # others compute in an order that may change the last bits
        seconds = 60 * self.args.minutes / len(set(self.SERVERS) & set(self.args.parts))
        kinds = KINDS + [TOO_LONG] if seconds > 60 else KINDS  # each takes seconds
        clients = [Client(server, kind, known) for kind in kinds]
        for _ in range(N_SAMPLES if seconds >= N_SAMPLES * 0.05 else 10):
            end = time.monotonic() + max(seconds / N_SAMPLES, 0.05)
            threads = [threading.Thread(target=self.run, args=(client, end)) for client in clients]
            [t.start() for t in threads]
            [t.join() for t in threads]
            if self.n_wrong:
                break
            self.sample_idle(server, sum(c.n for c in clients))
        m = server.metrics()
        print(part + ":", ", ".join(f"{m[f'slm_{name}']:.0f} {name.replace('_', ' ')}" for name in (
            *self.COUNTED, "cached_tokens_total", "kv_pages", "kv_pages_kept", "checkpoints", "checkpoints_kept")),
            flush=True)
        # A load in which little of that happens shows nothing about what may be lost.
        n = [m[f"slm_{name}"] for name in self.COUNTED if m["slm_checkpoints"] or "checkpoint" not in name]
        if seconds > 60 and part != "serve" and (min(n) < 20 or n[1] > n[0]):
            self.breaks("too few of these for a load that shows anything")
        code = server.stop(signal.SIGTERM)
        errors = server.said()
        if code or errors:
            self.breaks(f"the server ended with {code}: {errors[-3000:]}")
        if not os.environ.get("SANITIZE"):
            self.judge("requests")

    def run(self, client, end):
        try:
            client.run(end)
        except (Exception, SystemExit) as why:
            self.breaks(repr(why))

    def sample_idle(self, server, work):
        """Samples an idle server while its only connection is still open; one that a client has
        closed has a descriptor until the server handles that."""
        connection = server.connect()

        def is_idle():
            m = server.metrics(connection)
            return (all(m[name] == n for name, n in self.IDLE.items()) and
                    all(m[n] == m[f"{n}_free"] + m[f"{n}_kept"] for n in ("slm_kv_pages", "slm_checkpoints")))
        server.wait_until("idle with nothing left", is_idle, 600)
        self.sample(tree(server.child.pid), work)
        connection.close()


def main():
    p = argparse.ArgumentParser()
    for name in ("bench", "haul", "src", "work"):
        p.add_argument(name)
    p.add_argument("--minutes", type=float, default=60, help="for decode, and for serve")
    p.add_argument("--opens", type=int, default=500)
    p.add_argument("--launches", type=int, default=BASE)
    p.add_argument("--parts", type=lambda text: text.split(","),
                   default=["judge", "open", "sweep", "decode", *Haul.SERVERS])
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    args.bench, args.haul, args.src, args.work = map(os.path.abspath, (args.bench, args.haul, args.src, args.work))
    haul = Haul(args)
    for part in args.parts:
        if part in haul.SERVERS:
            haul.serve(part)
        else:
            getattr(haul, "judge_drifts" if part == "judge" else part)()
    sys.exit(1 if haul.broken else 0)


main()
