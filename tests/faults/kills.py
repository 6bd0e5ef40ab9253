# SPDX-License-Identifier: MIT
#
# kills.py - kill -9 at random moments, and what comes after
#
# usage: kills.py BENCH SRC WORK [--kills N] [--seed N] [--commands A,B] [--chain N]
#
# Each command runs once undisturbed, which gives its usual length. Then it is started and
# killed at a moment drawn uniformly from that length: its whole session, or bench alone,
# as the OOM killer does. It is started again as documented (sweep --resume, the same
# command, another folder) and killed again, --chain times; then it may end. After every
# kill no process of it lives, and tables, databases and outputs are whole or absent;
# after the end each row is there once, those from before as they were, and no part of a
# file, temporary file or group of a killed run is left. Prints what was killed and every
# broken promise; ends with 1 if there is one.
import argparse
import collections
import csv
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

ODD = re.compile(r"(^|/)(\.[0-9a-f]{5,16}|[^/]*(\.part|\.tmp|-journal|-wal)|imatrix-part[^/]*)$")
PATIENCE_S = 60
MARK = "SLM_KILLS_RUN"


class Run:
    """A started bench: its session, and what lives of it."""

    def __init__(self, kills, arguments):
        self.mark = f"{os.getpid()}.{kills.n_started}"
        kills.n_started += 1
        self.err = open(os.path.join(kills.work, "err"), "w+", errors="replace")
        self.process = subprocess.Popen(
            [kills.args.bench, *arguments], cwd=kills.folder, start_new_session=True,
            env=dict(kills.env, **{MARK: self.mark}), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.err)
        kills.pids.append(self.process.pid)

    def kill(self, alone):
        (os.kill if alone else os.killpg)(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stderr_tail(self):
        self.err.seek(0)
        return self.err.read().strip()[-300:]

    def alive(self):
        wanted = f"{MARK}={self.mark}\0".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    environment = f.read() + b"\0"
                with open(f"/proc/{pid}/stat") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if wanted in environment and state not in "ZX":
                found.append(pid)
        return found

    def left(self):
        """Processes that live on although the run was killed."""
        end = time.monotonic() + PATIENCE_S
        while (pids := self.alive()) and time.monotonic() < end:
            time.sleep(0.02)
        return pids


def read_lines(path):
    """Whole lines of a table as cells, and whether a torn one follows."""
    with open(path, newline="") as f:
        text = f.read()
    whole = text[:text.rfind("\n") + 1]
    return list(csv.reader(whole.splitlines())), len(whole) != len(text)


class Command:
    """One command in a fresh folder. broken() after a kill, ended() after the end; both
    yield the promises that do not hold."""

    def __init__(self, kills):
        self.kills = kills

    def path(self, *names):
        return os.path.join(self.kills.folder, *names)

    def begin(self):
        pass

    def close(self):
        pass

    def good(self, code):
        return code == 0

    def is_too_short(self, tail):
        return False

    def table(self, path, key):
        """What is wrong with a table; its rows by the key go to self.rows."""
        self.rows = {}
        if not os.path.exists(path):
            return
        lines, _ = read_lines(path)
        if not lines:
            return
        columns = [lines[0].index(name) for name in key]
        for line in lines[1:]:
            if len(line) != len(lines[0]):
                yield f"{os.path.basename(path)}: a row of {len(line)} cells"
                continue
            k = tuple(line[c] for c in columns)
            if k in self.rows:
                yield f"{os.path.basename(path)}: row {k} twice"
            self.rows[k] = line

    def kept(self, before):
        for k, line in before.items():
            if self.rows.get(k) != line:
                yield f"row {k} was lost or changed"


class Sweep(Command):
    POINTS = 4  # 2 models, 2 depths
    LAUNCHES = 2
    KEY = ("point", "attempt")
    NEW = ("sweep -m m.gguf -m nano:Q4_0 --threads 1 --ctx 0,16 --prefill none -n 4 --budget 0.05"
           " --no-charts --repeats 0 --launches 2 --max-launches 2 -o sw MEMORY")

    def begin(self):
        self.known = {}

    def arguments(self):
        if os.path.exists(self.path("sw", "machine.json")):
            return ["sweep", "--resume", "sw", "--no-charts", "--no-probe"]
        return self.NEW.replace("MEMORY", self.kills.memory).split()

    def broken(self):
        yield from self.table(self.path("sw", "sweep.csv"), self.KEY)
        yield from self.kept(self.known)
        self.known = dict(self.rows)

    def ended(self):
        yield from self.broken()
        if len(self.rows) != self.POINTS * self.LAUNCHES:
            yield f"{len(self.rows)} rows, not {self.POINTS * self.LAUNCHES}"
        lines, torn = read_lines(self.path("sw", "samples.csv"))
        count = collections.Counter((line[0], line[1]) for line in lines[1:])
        n = read_lines(self.path("sw", "sweep.csv"))[0][0].index("n_samples")
        for k, line in self.rows.items():
            if count.pop(k, 0) != int(line[n] or 0):
                yield f"samples of {k} are not those of its row"
        if count or torn:
            yield "samples without a row"
        if os.listdir(os.path.join(self.kills.work, "cache")):
            yield f"models are left: {os.listdir(os.path.join(self.kills.work, 'cache'))}"


class Gate(Command):
    LINE = "gate --a BENCH --b BENCH -m m.gguf --threads 1 --prefill none --ctx 0 --budget BUDGETs --no-charts -o"
    budget = 4

    def begin(self):
        self.n = 0

    def arguments(self):
        self.n += 1
        line = self.LINE.replace("BENCH", self.kills.args.bench)
        return (line.replace("BUDGET", str(self.budget)).split() +
                [f"gate{self.n}", *self.kills.memory.split()])

    def good(self, code):
        return code in (0, 1, 4)

    def is_too_short(self, tail):
        """How long a launch takes is the machine's business: a larger budget then."""
        if not re.search(r"a budget of .* holds \d+ launches of this model", tail):
            return False
        Gate.budget *= 2
        return True

    def broken(self):
        folder = self.path(f"gate{self.n}")
        yield from self.table(os.path.join(folder, "rounds.csv"), ("launch", "round", "metric"))
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in names:
            if name.endswith(".json"):
                try:
                    json.load(open(os.path.join(folder, name)))
                except ValueError as why:
                    yield f"{name} is not whole: {why}"

    def ended(self):
        yield from self.broken()
        if not os.path.exists(self.path(f"gate{self.n}", "gate.json")) or not self.rows:
            yield "a gate that has ended has no result"


class History(Command):
    def begin(self):
        example = os.path.join(self.kills.args.src, "results/examples/granite-rapids-2vcpu")
        lines = open(os.path.join(example, "sweep.csv")).readlines()
        machine = json.load(open(os.path.join(example, "machine.json")))
        self.runs = [os.path.join("runs", str(i)) for i in range(8)]
        for i, run in enumerate(self.runs):
            os.makedirs(self.path(run))
            machine["utc"] = f"2026-03-{i + 1:02}T00:00:00Z"
            json.dump(machine, open(self.path(run, "machine.json"), "w"))
            open(self.path(run, "sweep.csv"), "w").writelines(lines)
        self.all = len(self.runs) * (len(read_lines(self.path("runs/0/sweep.csv"))[0]) - 1)
        self.known = set()
        self.n = 0

    def arguments(self):
        self.n += 1  # more runs each time, as a machine that measures every night adds them
        return ["history", "add", "h.db", *self.runs[:min(len(self.runs), 4 * self.n)]]

    def last(self):
        return ["history", "add", "h.db", *self.runs]

    def broken(self):
        # A copy: what SQLite restores from the journal is bench's to restore.
        if not os.path.exists(self.path("h.db")):
            if self.known:
                yield "the database is gone"
            return
        for name in ("h.db", "h.db-journal"):
            copy = os.path.join(self.kills.work, "copy" + name[4:])
            if os.path.exists(copy):
                os.unlink(copy)
            if os.path.exists(self.path(name)):
                shutil.copy(self.path(name), copy)
        yield from self.database(os.path.join(self.kills.work, "copy"))

    def database(self, path):
        db = sqlite3.connect(path)
        try:
            state = db.execute("PRAGMA integrity_check").fetchone()[0]
            if state != "ok":
                yield f"integrity_check: {state}"
            names = {r[0] for r in db.execute("SELECT name FROM sqlite_schema")}
            rows = (db.execute("SELECT run, point, attempt, utc FROM rows").fetchall()
                    if "rows" in names else [])
        finally:
            db.close()
        if len(set(rows)) != len(rows):
            yield "a row twice"
        if self.known - set(rows):
            yield f"{len(self.known - set(rows))} rows lost"
        self.known = set(rows)

    def ended(self):
        yield from self.database(self.path("h.db"))
        if len(self.known) != self.all:
            yield f"{len(self.known)} rows, not {self.all}"


class Choose(Command):
    LINE = ("choose -m m.gguf --calibration t.txt --types q8_0,q4_0 --groups 8 --chunk-tokens 64 --chunks 4"
            " --sense-chunks 1 --max-file 400K --mixes 2 --budget 0.05 --launches 1 --no-probe --ctx 60"
            " -o ch -t 1")

    def begin(self):
        self.steps = {}

    def arguments(self):
        return self.LINE.split()

    def broken(self):
        steps = {}
        if os.path.exists(self.path("ch", "choose.json")):
            try:
                steps = json.load(open(self.path("ch", "choose.json")))["steps"]
            except (ValueError, KeyError) as why:
                yield f"choose.json is not whole: {why!r}"
        for name, value in self.steps.items():
            if steps.get(name) != value:
                yield f"step {name} was lost or changed"
        self.steps = steps
        for folder, _, names in os.walk(self.path("ch")):
            for name in names:
                if name == "sweep.csv":
                    yield from self.table(os.path.join(folder, name), Sweep.KEY)
                if name.endswith(".gguf") and not self.kills.reads(os.path.join(folder, name)):
                    yield f"{name} is not whole"

    def ended(self):
        yield from self.broken()
        if not any(n.startswith("speed-") for n in os.listdir(self.path("ch"))):
            yield "a choice that has ended has no speeds"


class Serve(Command):
    """It has no end of its own: clients send requests all the time, and 1 s later it is ended."""
    SECONDS = 1.0

    def begin(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.stop = False
        self.clients = [threading.Thread(target=self.request_on, daemon=True) for _ in range(2)]
        for t in self.clients:
            t.start()

    def close(self):
        self.stop = True
        for t in self.clients:
            t.join()

    def complete(self):
        body = {"model": "m", "prompt": "Once upon a time", "max_tokens": 40}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/completions", json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["choices"][0]["text"]

    def request_on(self):
        while not self.stop:
            try:
                self.complete()
            except (OSError, ValueError):
                time.sleep(0.02)

    def arguments(self):
        return f"serve -m m.gguf -t 1 --ctx 128 --sequences 2 --port {self.port}".split()

    def finish(self, run):
        """It answers, and SIGTERM ends it."""
        end = time.monotonic() + PATIENCE_S
        answered = False
        while not answered and time.monotonic() < end and run.process.poll() is None:
            try:
                answered = bool(self.complete())
            except (OSError, ValueError):
                time.sleep(0.02)
        run.process.terminate()
        code = run.process.wait(PATIENCE_S)
        return code if answered else f"without an answer, {code}"

    def broken(self):
        return ()

    ended = broken


COMMANDS = {"sweep": Sweep, "gate": Gate, "history": History, "serve": Serve, "choose": Choose}


class Kills:
    def __init__(self, args):
        self.args = args
        self.work = args.work
        self.folder = os.path.join(args.work, "run")
        self.env = dict(os.environ, SLMBENCH_LOCK="none", SLMBENCH_PROGRESS="none",
                        SLMBENCH_CACHE=os.path.join(args.work, "cache"),
                        SLMBENCH_LLC="64M", SLMBENCH_PROBE="rough",
                        TMPDIR=os.path.join(self.folder, "tmp"), LC_ALL="C")
        self.random = random.Random(args.seed)
        self.n_started = 0
        self.pids = []
        self.broken = []
        self.memory = "--mem none"

    def bench(self, *arguments):
        return subprocess.run([self.args.bench, *arguments], cwd=self.folder, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode

    def reads(self, model):
        return self.bench("gguf", model) == 0

    def prepare(self):
        for name in ("run", "cache"):  # what one piece of work has left is not of the next
            shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "tmp"))
        os.makedirs(os.path.join(self.work, "cache"))
        shutil.copy(os.path.join(self.args.src, "tests/data/models/stories260K-f32.gguf"),
                    os.path.join(self.folder, "m.gguf"))
        with open(os.path.join(self.args.src, "configs/texts/shakespeare-heldout.txt")) as f:
            text = f.read(9000)
        with open(os.path.join(self.folder, "t.txt"), "w") as f:
            f.write(text)

    def leftovers(self):
        odd = [os.path.relpath(os.path.join(d, f), self.folder)
               for d, _, names in os.walk(self.folder) for f in names]
        odd = [f for f in odd if f.startswith("tmp/") or ODD.search(f)]
        if odd:
            yield f"{len(odd)} files left: {' '.join(sorted(odd)[:4])}"
        own = tuple(f"slmbench.{pid}." for pid in self.pids)
        here = "." + re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))  # where these numbers are theirs
        groups = [n for _, names, _ in os.walk("/sys/fs/cgroup") for n in names
                  if n.startswith(own) and n.endswith(here)]
        if groups:
            yield f"groups left: {' '.join(groups)}"

    def until_end(self, command, arguments):
        """Runs it to its end: the seconds it took."""
        begin = time.monotonic()
        run = Run(self, arguments)
        if hasattr(command, "finish"):
            code = command.finish(run)
        else:
            code = run.process.wait()
        self.seconds = time.monotonic() - begin
        if command.good(code):
            yield from command.ended()
            yield from self.leftovers()
        elif command.is_too_short(run.stderr_tail()):
            yield from self.until_end(command, command.arguments())
        else:
            yield f"'{' '.join(arguments)}' ended with {code}: {run.stderr_tail()}"

    def report(self, name, when, promises):
        for promise in promises:
            line = f"{name}: {when}: {promise}"
            self.broken.append(line)
            print("BROKEN", line, flush=True)

    def chain(self, name, n):
        """n kills of one piece of work, which is then finished; the number that hit."""
        command = COMMANDS[name](self)
        self.prepare()
        self.pids = []
        command.begin()
        hit = 0
        moments = []
        for _ in range(n):
            arguments = command.arguments()
            at = self.random.uniform(0, self.length)
            alone = self.random.random() < 0.5
            run = Run(self, arguments)
            time.sleep(at)
            ended = run.process.poll() is not None
            if ended and command.is_too_short(run.stderr_tail()):
                break
            if ended and not command.good(run.process.returncode):
                self.report(name, f"started after {moments}",
                            [f"'{' '.join(arguments)}' ended with {run.process.returncode}: {run.stderr_tail()}"])
                break
            if not ended:
                run.kill(alone)
                hit += 1
            moments.append(f"{at:.3f} s{' alone' if alone else ''}{' (too late)' if ended else ''}")
            when = f"killed at {', '.join(moments)}"
            left = run.left()
            self.report(name, when, [f"processes live on: {' '.join(left)}"] if left else [])
            self.report(name, when, command.broken())
            if ended:
                break
        last = getattr(command, "last", command.arguments)()
        self.report(name, f"resumed after {', '.join(moments)}", self.until_end(command, last))
        command.close()
        return hit

    def command(self, name):
        # Whether groups can be made here: then it is measured in one, whose removal counts.
        self.prepare()
        limited = self.bench(*"decode -m m.gguf -t 1 -n 1 --budget 0.01 --mem 512M".split()) == 0
        self.memory = "--mem 512M" if limited else "--mem none"
        before = len(self.broken)
        command = COMMANDS[name](self)
        self.prepare()
        self.pids = []
        command.begin()
        first = getattr(command, "last", command.arguments)()
        self.report(name, "undisturbed", self.until_end(command, first))
        command.close()
        if len(self.broken) > before:
            return 0
        self.length = getattr(command, "SECONDS", self.seconds)
        begin = time.monotonic()
        hit = n_chains = 0
        while hit < self.args.kills and n_chains < 4 * self.args.kills:
            n_chains += 1
            hit += self.chain(name, min(self.random.randint(1, self.args.chain), self.args.kills - hit))
        print(f"{name:8} {hit} kills within {self.length:.2f} s, "
              f"{len(self.broken) - before} broken promises, {time.monotonic() - begin:.0f} s",
              flush=True)
        return hit


def main():
    p = argparse.ArgumentParser()
    for name in ("bench", "src", "work"):
        p.add_argument(name)
    p.add_argument("--kills", type=int, default=100, help="kills for each command")
    p.add_argument("--chain", type=int, default=3, help="maximum of one piece of work")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--commands", type=lambda text: text.split(","), default=list(COMMANDS))
    kills = Kills(p.parse_args())
    os.makedirs(kills.work, exist_ok=True)
    print(f"seed {kills.args.seed}", flush=True)
    hit = sum(kills.command(name) for name in kills.args.commands)
    print(f"{hit} kills, {len(kills.broken)} broken promises")
    sys.exit(1 if kills.broken or not hit else 0)


main()
