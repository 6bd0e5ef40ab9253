# SPDX-License-Identifier: MIT
#
# faults.py - every system call that matters fails once, in short runs of bench
#
# usage: faults.py RUNNER BENCH SRC WORK [--positions P|every|distinct] [--commands A,B]
#                  [--kinds A,B] [--faults A,B] [--once] [--seconds S] [--shard I/N]
#                  [--done FILE]
#
# Each command runs once to list its calls of each kind; then once for each fault of a
# kind at P of its calls, spread evenly from the first to the last, and again with all
# later ones failing, too, as on a full disk. Every: at each call. Distinct: calls that
# are made at the same place about the same thing, by the first process or by those that
# it starts, are alike, and the first and the last of them fail, whichever number they
# have in that run. However it ends, it must end as the project promises: an exit code
# that is documented, at most one sentence more than an undisturbed run prints, one where
# the code is 2 or 3, no signal, no hang, no row of a table lost or twice, and no process,
# group or temporary file left behind, and no model opened behind less of a fence than
# undisturbed, unless a note reports it. A server answers others as if nothing had failed,
# and when one call has failed it answers again or ends. Prints a table of outcomes and
# every broken promise; ends with 1 if there is one. With --seconds the runs are in random
# order and none begins later than that; with --shard 2/3 they are the second third of all.
# FILE names the runs that were made, each with its end: they are left out, and those of
# now are added.
import argparse
import collections
import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

from serving import KEY, Serving

FAULTS = {
    "open": ["EMFILE", "EIO", "ENOMEM"],
    "read": ["EIO", "EINTR", "short"],
    "write": ["ENOSPC", "EIO", "EINTR", "short"],
    "fsync": ["EIO", "ENOSPC"],
    "rename": ["ENOSPC", "EIO"],
    "unlink": ["EIO"],
    "mkdir": ["ENOSPC", "EACCES"],
    "truncate": ["ENOSPC", "EIO"],
    "mmap": ["ENOMEM"],
    "fork": ["EAGAIN", "ENOMEM"],
    "thread": ["EAGAIN"],
    "exec": ["ENOMEM", "EIO"],
    "pipe": ["EMFILE"],
    "stat": ["EIO", "ENOMEM"],
    "list": ["EIO"],
    "lock": ["ENOLCK", "EINTR"],
    "cgroup": ["EBUSY", "EACCES", "ENOSPC", "EIO"],
    "io_uring": ["ENOMEM", "EPERM", "EINTR"],
    "socket": ["EMFILE", "ENOBUFS"],
    "accept": ["EMFILE", "ECONNABORTED", "EINTR", "ENOBUFS"],
    "receive": ["ECONNRESET", "EINTR", "short"],
    "send": ["EPIPE", "ECONNRESET", "EINTR", "short"],
    "poll": ["EINTR", "ENOMEM"],
    "watch": ["ENOMEM", "ENOSPC"],
    "wait": ["EINTR"],
    "protect": ["ENOMEM"],
    "place": ["EPERM", "EINVAL"],
    "fence": ["EPERM", "EINVAL"],
    "duplicate": ["EMFILE"],
    "attributes": ["EPERM", "EROFS"],
    "random": ["ENOSYS", "EINTR"],
    "sleep": ["EINTR"],
    "timer": ["EAGAIN"],
    "perf": ["EACCES", "EMFILE"],
}
CODES = {0, 1, 2, 3, 4, 130}
LIMIT_S = 120  # in which it could have run

LAUNCHES = 2  # of a point; one where a sweep is what fails: it makes the same calls
POINTS = 2
SWEEP = ("sweep -m m.gguf --threads 1 --ctx 0,16 --prefill none -n 4 --no-charts"
         " --no-probe --repeats 0 --launches {0} --max-launches {0} -o sw")
TINY = "-m m.gguf --threads 1 --prefill none --ctx 0"
QUALITY = "quality -m m.gguf:Q8_0 --reference m.gguf --text t.txt --ctx 32 -t 1 -o q --chunks "
COMMANDS = {  # name: (what its folder holds beforehand, arguments)
    "decode": ("", "decode -m m.gguf -t 1 -n 8 --mem 512M --budget 0.2"),
    "sweep": ("", SWEEP.format(1)),
    "resume": ("part of a sweep", "sweep --resume sw --no-probe"),
    "probe": ("part of a sweep", "sweep --resume sw"),
    "quantize": ("", "quantize m.gguf out.gguf Q8_0"),
    "pack": ("", "pack m.gguf:Q8_0 -o out.gguf --verify"),
    "imatrix": ("text", "imatrix -m m.gguf --text t.txt -o out.gguf --ctx 32 --chunks 2"),
    "recommend": ("sweep", "recommend sw"),
    "plot": ("sweep", "plot sw"),
    "history": ("sweep", "history add results.db sw"),
    "again": ("sweep database", "history add results.db sw"),
    "compare": ("sweep nights", "history compare results.db --rows sw --margin 50%"),
    "changes": ("sweep nights", "history changes results.db"),
    "rows": ("sweep", "rows sw"),
    "tree": ("sweep", "rows ."),
    "report": ("sweep", "report sw -o page.html"),
    "gguf": ("", "gguf m.gguf"),
    "topo": ("", "topo"),
    "plan": ("", "plan -m m.gguf"),
    "quality": ("text quality", QUALITY + "2"),
    "tokenize": ("text", "tokenize -m m.gguf -f t.txt"),
    "generate": ("", "generate -m m.gguf -t 1 -n 8 -p Once"),
    "serve": ("keys", "serve -m m.gguf -t 1 --ctx 128 --sequences 2 --port 0 --api-key-file keys"),
    "convert": ("folder", "quantize hf out.gguf Q8_0"),
    "occupied": ("sweep", SWEEP.format(LAUNCHES)),
    "chosen": ("text steps", "choose -m m.gguf --calibration t.txt -o ch"),
    "gate": ("rule", f"gate --a BENCH --b BENCH -c gate.yaml {TINY} --mem 512M --budget SECONDSs --no-charts -o gate"),
}
# The fewest launches and rounds that a gate accepts: it makes the same calls less often.
FEWEST = "alpha_fail: 20%\nalpha_pass: 20%\nrounds: 1\nmemory: false\nload: false\n"
BUDGETS_S = (1, 2, 4, 8)
# What draws charts is another program, whose calls do not fail.
GNUPLOT = "#!/bin/sh\necho drawn >${1%.gp}.svg\necho drawn >${1%.gp}.png\n"
# Their other calls are another command's.
KINDS = {"probe": {"place", "thread"}}
# What they write, or print where they write no file, is the same each time they end with 0.
EXACT = {"convert", "quantize", "pack", "recommend", "rows", "tree", "compare", "changes", "gguf", "tokenize", "generate"}
OUTPUTS = ("out.gguf", "page.html")
# What they would write over is there: they refuse that, and every file stays as it is.
REFUSED = {"occupied", "chosen"}

# How they end undisturbed, if not with 0.
ENDS = {"gate": {0, 4}, **dict.fromkeys(REFUSED, {2})}

# A folder to draw charts in, among others: hexadecimal digits, as a whole name.
RANDOM_NAME = r"(?:(?<=^\.)|(?<=/\.))[0-9a-f]{8,16}(?=[/)])"

# After SIGTERM; about this kernel; where looking for gnuplot is what fails.
NO_FAILURES = ("bench: stops when ", "bench: note: ", "bench: gnuplot is not installed")
PART_OF_FENCE = "bench: note: this kernel has no "


class Faults:
    def __init__(self, args):
        self.args = args
        self.folder = os.path.join(args.work, "run")
        self.env = dict(os.environ, SLMBENCH_LOCK="none", SLMBENCH_PROGRESS="none",
                        SLMBENCH_CACHE=os.path.join(args.work, "cache"),
                        SLMBENCH_LLC="64M", SLMBENCH_PROBE="rough",
                        TMPDIR=os.path.join(args.work, "run", "tmp"), LC_ALL="C",
                        PATH=os.path.join(args.work, "programs") + ":" + os.environ["PATH"])
        self.outcomes = collections.Counter()
        self.broken = []
        self.rows = 0  # that the table holds before the command
        self.begin = time.monotonic()
        self.left_out = 0
        self.done = set()
        if args.done and os.path.exists(args.done):
            with open(args.done) as f:
                self.done = {line.partition("\t")[0] for line in f.read().splitlines()}
        self.budget = 0  # the whole part: which of BUDGETS_S a gate gets first
        os.makedirs(os.path.join(args.work, "programs"), exist_ok=True)
        with open(os.path.join(args.work, "programs", "gnuplot"), "w") as f:
            f.write(GNUPLOT)
            os.fchmod(f.fileno(), 0o755)

    def bench(self, *arguments):
        subprocess.run([self.args.bench, *arguments], cwd=self.folder, env=self.env,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def prepare(self, what):
        """A fresh folder with what the command needs; made once, then copied."""
        made = os.path.join(self.args.work, "made " + what)
        shutil.rmtree(self.folder, ignore_errors=True)
        if os.path.isdir(made):
            shutil.copytree(made, self.folder)
        else:
            os.makedirs(os.path.join(self.folder, "tmp"))
            shutil.copy(os.path.join(self.args.src,
                                     "tests/data/models/stories260K-f32.gguf"),
                        os.path.join(self.folder, "m.gguf"))
            with open(os.path.join(self.folder, "t.txt"), "w") as f:
                f.write("Once upon a time there was a little girl. " * 40)
            if "sweep" in what:
                self.bench(*SWEEP.format(LAUNCHES).split())
            with open(os.path.join(self.folder, "keys"), "w") as f:
                f.write(f"{KEY}\n")
            if "nights" in what:
                self.add_nights(6)
            if "database" in what:
                self.bench("history", "add", "results.db", "sw")
            if "quality" in what:
                self.bench(*(QUALITY + "1").split())
            if "folder" in what:
                self.make_folder("hf")
            if "steps" in what:
                self.put("ch/choose.json", '{"settings": {"model": "a"}, "steps": {"b": 1}}')
                self.bench(*"imatrix -m m.gguf --text t.txt -o ch/imatrix.gguf --ctx 32 --chunks 1".split())
            if "rule" in what:
                self.put("gate.yaml", FEWEST)
            if "part" in what:
                path = os.path.join(self.folder, "sw", "sweep.csv")
                lines = open(path).readlines()
                open(path, "w").writelines(lines[:-1])
            shutil.copytree(self.folder, made)
        self.before = self.files()
        self.rows = self.table()[0]
        self.stored = self.database()[0]
        self.judged = self.quality()
        self.contents = self.read(self.before) if self.name in REFUSED else {}

    def put(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.folder, path)), exist_ok=True)
        with open(os.path.join(self.folder, path), "w") as f:
            f.write(text)

    def make_folder(self, name):
        """A model's folder of Hugging Face, with all files that may be missing."""
        models = os.path.join(self.args.src, "tests/support/models")
        for program, out in (("make_hf_folder", name), ("make_tokenizer_json", name + "/tokenizer.json")):
            subprocess.run([sys.executable, f"{models}/{program}.py", "m.gguf", out], cwd=self.folder, check=True,
                           stdout=subprocess.DEVNULL)
        for file, text in (("chat_template.jinja", "{{ messages[0].content }}"),
                           ("additional_chat_templates/tool_use.jinja", "{{ tools }}"),
                           ("generation_config.json", '{"eos_token_id": 5}'),
                           ("special_tokens_map.json", '{"unk_token": "<unk>"}'),
                           ("tokenizer_config.json", '{"add_eos_token": true, "eos_token": "</s>"}')):
            self.put(f"{name}/{file}", text)

    def read(self, paths):
        found = {}
        for path in paths:
            with open(os.path.join(self.folder, path), "rb") as f:
                found[path] = f.read()
        return found

    def add_nights(self, n):
        """The same sweep of n earlier days in the database."""
        texts = {}
        for name in ("machine.json", "sweep.csv"):
            with open(os.path.join(self.folder, "sw", name)) as f:
                texts[name] = f.read()
        for i in range(n + 1):
            for name, text in texts.items():
                if i < n:
                    text = re.sub(r"\b20\d\d-\d\d-\d\dT[0-9:]*Z", f"2026-03-{i + 1:02}T00:00:00Z", text)
                with open(os.path.join(self.folder, "sw", name), "w") as f:
                    f.write(text)
            if i < n:
                self.bench("history", "add", "results.db", "sw")

    def files(self):
        return {os.path.relpath(os.path.join(d, f), self.folder)
                for d, _, names in os.walk(self.folder) for f in names}

    def table(self, only=None):
        """Rows of sweep.csv, or those of one status, and what is wrong with it."""
        path = os.path.join(self.folder, "sw", "sweep.csv")
        if not os.path.exists(path):
            return 0, None
        with open(path, newline="") as f:
            rows = list(csv.reader(f))
        if any(len(r) != len(rows[0]) for r in rows):
            return len(rows) - 1, "sweep.csv has rows of different lengths"
        keys = [r[:rows[0].index("attempt") + 1] for r in rows] if rows else []
        if len({tuple(k) for k in keys}) != len(keys):
            return len(rows) - 1, "sweep.csv has a row twice"
        if only:  # a point that ended with the same error twice is not tried again
            status, point = rows[0].index("status"), rows[0].index("point")
            failed = collections.Counter(r[point] for r in rows[1:] if r[status] == "error")
            return sum(r[status] == only for r in rows[1:]) + sum(self.launches() for n in failed.values() if n > 1), None
        return max(len(rows) - 1, 0), None

    def launches(self):
        return 1 if self.name == "sweep" else LAUNCHES

    def quality(self):
        """Rows of quality.csv."""
        path = os.path.join(self.folder, "q", "quality.csv")
        if not os.path.exists(path):
            return 0
        with open(path, newline="") as f:
            return len(list(csv.reader(f)))

    def database(self):
        """Rows of the database, as the next who opens it finds them, and what is wrong."""
        path = os.path.join(self.folder, "results.db")
        copy = os.path.join(self.args.work, "copy")
        for end in ("", "-journal"):
            if os.path.exists(copy + end):
                os.unlink(copy + end)
            if os.path.exists(path + end):
                shutil.copy(path + end, copy + end)
        if not os.path.exists(copy):
            return 0, None
        db = sqlite3.connect(copy)
        try:
            state = db.execute("PRAGMA integrity_check").fetchone()[0]
            tables = {r[0] for r in db.execute("SELECT name FROM sqlite_schema")}
            rows = db.execute("SELECT run, point, attempt FROM rows").fetchall() if "rows" in tables else []
        finally:
            db.close()
        if state != "ok":
            return len(rows), f"results.db: {state}"
        return len(rows), "results.db has a row twice" if len(set(rows)) != len(rows) else None

    def outputs(self):
        """What a command that ended with 0 has written, or printed."""
        written = [p for p in (os.path.join(self.folder, n) for n in OUTPUTS) if os.path.exists(p)]
        found = []
        for path in written or [os.path.join(self.args.work, "out")]:
            with open(path, "rb") as f:
                found.append(hash(f.read()))
        return found

    def run(self, arguments, kind="none", fault="trace", at="0"):
        path, trace, out, err = (os.path.join(self.args.work, n) for n in ("report.json", "trace", "out", "err"))
        if os.path.exists(path):
            os.unlink(path)
        with open(out, "w") as o, open(err, "w") as e:
            runner = subprocess.Popen([self.args.runner, path, str(LIMIT_S), kind,
                                       trace if kind == "none" else fault, at, "--", self.args.bench, *arguments],
                                      cwd=self.folder, env=self.env, stdout=o, stderr=e, stdin=subprocess.DEVNULL)
        wrong = self.serving.run(runner, out, 0.5 if "+" in at.partition("@")[0] else 10) if self.serving else []
        code = runner.wait()
        if code == 77:
            print("skipped: this machine does not allow ptrace")
            sys.exit(77)
        with open(path) as f:
            report = json.load(f)
        with open(err, errors="replace") as f:
            lines = [line.strip() for line in f]
        report["stderr"] = [line for line in lines if line.startswith("bench: ") and not line.startswith(NO_FAILURES)]
        report["noted"] = any(line.startswith(PART_OF_FENCE) for line in lines)
        report["wrong"] = wrong
        return report

    def calls(self):
        """Calls of the run that counted, a list for each kind; alike ones are equal."""
        found = collections.defaultdict(list)
        with open(os.path.join(self.args.work, "trace"), errors="replace") as f:
            for line in f:
                kind, _, call = line.rstrip("\n").partition("\t")
                place, _, thing = call.partition("(")
                found[kind].append(place + "(" + re.sub("[0-9]+", "N", re.sub(RANDOM_NAME, "X", thing)))
        return found

    def groups(self, pids):
        """The memory groups that these processes have made."""
        own = tuple(f"slmbench.{pid}." for pid in pids)
        return [os.path.join(d, n) for d, names, _ in os.walk("/sys/fs/cgroup")
                for n in names if n.startswith(own)]

    def promises(self, report, usual, for_ever):
        """The promises that this end breaks."""
        if report["timed_out"]:
            yield f"no end within {LIMIT_S} s"
        elif report["signal"]:
            yield f"died of signal {report['signal']}"
        elif report["code"] not in CODES:
            yield f"exit code {report['code']}"
        if report["code"] in (2, 3) and not report["stderr"]:
            yield f"exit code {report['code']} without a sentence"
        if len(report["stderr"]) > usual + 1:
            yield f"{len(report['stderr'])} sentences: {' | '.join(report['stderr'])}"
        less = set(report["walls"]) - self.walls
        if less and not report["noted"]:
            yield f"a model was opened behind {', '.join(sorted(less))} of a fence, not {', '.join(sorted(self.walls))}"
        if any(re.search(r"\banother (process|program|sweep|choice|`bench \w+`) (is|has)\b", s) for s in report["stderr"]):
            yield "it blames another, though nothing else runs"
        changed = [p for p, text in self.contents.items()
                   if p not in self.files() or self.read([p])[p] != text]
        if changed:
            yield "files changed: " + " ".join(sorted(changed))
        if report["left"]:
            yield f"{report['left']} processes left behind"
        groups = self.groups(report["pids"])
        if groups and for_ever and "cgroup" in report["where"]:
            # Who may no longer remove a group leaves it to the next run.
            self.bench(*COMMANDS["decode"][1].split())
            groups = self.groups(report["pids"])
        if groups:
            yield "groups left behind: " + " ".join(groups)
            for group in reversed(groups):
                try:
                    os.rmdir(group)
                except OSError:
                    pass
        odd = [f for f in self.files() - self.before
               if f.startswith("tmp/") or ".part" in f or f.endswith(".tmp")]
        if odd:
            yield "files left behind: " + " ".join(sorted(odd))
        rows, wrong = self.table()
        if rows < self.rows:
            yield f"{self.rows - rows} rows lost"
        if wrong:
            yield wrong
        stored, wrong = self.database()
        if wrong or stored < self.stored:
            yield wrong or f"{self.stored - stored} rows lost from the database"
        if self.quality() < self.judged:
            yield f"{self.judged - self.quality()} rows lost from quality.csv"
        yield from report["wrong"]
        if self.serving and not for_ever and not report["code"] and not report["timed_out"] \
                and not self.serving.is_served_again:
            yield "it serves nobody any more: " + self.serving.failed[-1]
        if report["code"] == 1 and self.name == "gate":
            yield "equal builds fail"
        if report["code"] == 0 and self.name in EXACT and self.outputs() != self.usual:
            yield "exit code 0, and another result"
        yield from self.afterwards(report)

    def afterwards(self, report):
        """The same work once more, without faults: what was begun is finished, each row once."""
        if not report["code"] or self.name not in ("sweep", "resume", "probe", "history"):
            return
        if self.name == "history":
            self.bench(*COMMANDS["history"][1].split())
            n, wrong = self.database()
        else:
            begun = os.path.exists(os.path.join(self.folder, "sw", "machine.json"))
            again = COMMANDS["resume" if begun else "sweep"][1].split()
            subprocess.run([self.args.bench, *again], cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            n, wrong = self.table(only="ok")
        if wrong or n != self.all_rows:
            yield f"afterwards: {wrong or f'{n} rows, not {self.all_rows}'}"

    def positions(self, calls):
        """Numbers of calls, and what those that are counted are like, if not all are."""
        count = len(calls)
        if self.args.positions == "distinct":
            return [(at, call) for call, n in collections.Counter(calls).items() for at in sorted({1, n})]
        if self.args.positions == "every":
            return [(at, "") for at in range(1, count + 1)]
        n = min(int(self.args.positions), count)
        return [(at, "") for at in sorted({1 + round((count - 1) * i / max(n - 1, 1)) for i in range(n)})]

    def command(self, name):
        what, arguments = COMMANDS[name]
        arguments = arguments.replace("BENCH", self.args.bench).split()
        self.name = name
        self.serving = Serving() if name == "serve" else None
        plain = self.run_afresh(what, arguments)
        calls = self.calls()
        usual = len(plain["stderr"])
        self.usual = self.outputs() if name not in REFUSED else []
        self.walls = set(plain["walls"])
        self.all_rows = self.database()[0] if name == "history" else self.table(only="ok")[0]
        if plain["code"] not in ENDS.get(name, {0}) or plain["left"] or plain["wrong"] or plain["noted"] or \
                (self.serving and self.serving.failed) or \
                (name in ("sweep", "resume", "probe") and self.all_rows != POINTS * self.launches()):
            print(f"{name}: not undisturbed: {plain}, {self.all_rows} rows")
            sys.exit(77 if plain["code"] == 3 else 1)
        plan = [(kind, fault, at, more, call) for kind in self.args.kinds for fault in FAULTS[kind]
                if kind in KINDS.get(name, FAULTS) and (not self.args.faults or fault in self.args.faults)
                for at, call in self.positions(calls[kind])
                for more in ("", "+") if not more or fault != "EINTR" and not self.args.once]  # for ever: no end of anything
        plan = [run for run in plan if self.draw(run) % self.args.shard[1] == self.args.shard[0] - 1]
        if self.args.seconds:
            plan.sort(key=self.draw)
        begin = time.monotonic()
        for run in plan:
            if self.known_as(run) not in self.done:
                self.one(what, arguments, run, usual)
        print(f"{name}: {len(plan)} faults planned, {time.monotonic() - begin:.0f} s", flush=True)

    def run_afresh(self, what, arguments, *fault):
        """In a fresh folder; a gate with twice the time where the machine is too busy for the budget."""
        self.budget = max(self.budget - 0.1, 0)  # after some runs the next shorter one is tried again
        for i in range(int(self.budget), len(BUDGETS_S)):
            self.prepare(what)
            report = self.run([a.replace("SECONDS", str(BUDGETS_S[i])) for a in arguments], *fault)
            if report["code"] != 2 or not re.search(r"a budget of .* holds \d+ launches", " ".join(report["stderr"])):
                break
            self.budget = min(i + 2, len(BUDGETS_S)) - 0.01
        return report

    def draw(self, run):
        """A number that looks random, and is a run's every time."""
        return int.from_bytes(hashlib.md5(self.known_as(run).encode()).digest(), "big")

    def known_as(self, run):
        """A run's name in the file of those that were made, which the next time has, too."""
        kind, fault, at, more, call = run
        return " ".join((self.name, kind, fault, "last" if call and at > 1 else str(at), more, call))

    def one(self, what, arguments, run, usual):
        if self.args.seconds and time.monotonic() - self.begin > self.args.seconds:
            self.left_out += 1
            return
        kind, fault, at, more, call = run
        while True:
            number = f"{at}{more}" + ("@" + call if call else "")
            report = self.run_afresh(what, arguments, kind, fault, number)
            if report["failed"] or not call or at < 4:
                break
            at //= 2  # this time there were fewer calls
        if not report["failed"]:
            return
        end = ("hang" if report["timed_out"] else f"signal {report['signal']}"
               if report["signal"] else f"exit {report['code']}")
        self.outcomes[self.name, kind, fault, end] += 1
        for promise in self.promises(report, usual, bool(more)):
            line = f"{self.name}: {kind} {fault} '{number}' {report['where']}: {promise}"
            if report["stderr"]:
                line += f" [{report['stderr'][-1]}]"
            self.broken.append(line)
            print("BROKEN", line, flush=True)
        if self.args.done:
            with open(self.args.done, "a") as f:
                f.write(f"{self.known_as(run)}\t{end}\n")

    def print_table(self):
        ends = sorted({key[3] for key in self.outcomes})
        rows = collections.defaultdict(collections.Counter)
        for (name, kind, fault, end), n in self.outcomes.items():
            rows[name, kind, fault][end] += n
        print(f"{'command':10} {'call':9} {'fault':7}", *(f"{e:>9}" for e in ends))
        for key in sorted(rows):
            print("{:10} {:9} {:7}".format(*key), *(f"{rows[key][e] or '':>9}" for e in ends))
        print(f"{sum(self.outcomes.values())} faults, {len(self.broken)} broken promises"
              + (f", {self.left_out} faults left out for lack of time" if self.left_out else ""))


def main():
    def listed(text):
        return text.split(",")

    p = argparse.ArgumentParser()
    for name in ("runner", "bench", "src", "work"):
        p.add_argument(name)
    p.add_argument("--positions", default="40", help="a number, every or distinct")
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--shard", type=lambda text: tuple(map(int, text.split("/"))), default=(1, 1), help="I/N")
    p.add_argument("--done", help="file of runs that are made, which are left out")
    p.add_argument("--once", action="store_true", help="no later call fails, too")
    p.add_argument("--commands", type=listed, default=list(COMMANDS))
    p.add_argument("--kinds", type=listed, default=list(FAULTS))
    p.add_argument("--faults", type=listed, default=[])
    args = p.parse_args()
    args.runner, args.bench, args.src, args.work = map(os.path.abspath, (args.runner, args.bench, args.src, args.work))
    faults = Faults(args)
    for name in faults.args.commands:
        faults.command(name)
    faults.print_table()
    sys.exit(1 if faults.broken else 0)


main()
