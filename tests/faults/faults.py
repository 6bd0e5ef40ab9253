# SPDX-License-Identifier: MIT
#
# faults.py - every system call that matters fails once, in short runs of bench
#
# usage: faults.py RUNNER BENCH SRC WORK [--positions P] [--commands A,B]
#                  [--kinds A,B] [--faults A,B]
#
# Each command runs once to count its calls of each kind; then once for each fault of a
# kind at P of its calls, spread evenly from the first to the last, and again with all
# later ones failing, too, as on a full disk. However it ends, it must end as the project
# promises: an exit code that is documented, at most one sentence more than an
# undisturbed run prints, one where the code is 2 or 3, no signal, no hang, no row of a
# table lost, and no process, group or temporary file left behind. Prints a table of
# outcomes and every broken promise; ends with 1 if there is one.
import argparse
import collections
import csv
import json
import os
import shutil
import subprocess
import sys

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
}
CODES = {0, 1, 2, 3, 4, 130}
LIMIT_S = 60

SWEEP = ("sweep -m m.gguf --threads 1 --ctx 0,16 --prefill none -n 4 --no-charts"
         " --no-probe --repeats 0 -o sw").split()
TINY = "-m m.gguf --threads 1 --prefill none --ctx 0"
COMMANDS = {  # name: (what its folder holds beforehand, arguments)
    "decode": ("", "decode -m m.gguf -t 1 -n 8 --mem 512M --budget 0.2"),
    "sweep": ("", " ".join(SWEEP)),
    "resume": ("part of a sweep", "sweep --resume sw"),
    "quantize": ("", "quantize m.gguf out.gguf Q8_0"),
    "pack": ("", "pack m.gguf:Q8_0 -o out.gguf --verify"),
    "imatrix": ("text", "imatrix -m m.gguf --text t.txt -o out.gguf --ctx 32 --chunks 2"),
    "recommend": ("sweep", "recommend sw"),
    "plot": ("sweep", "plot sw"),
    "history": ("sweep", "history add results.db sw"),
    "gate": ("", f"gate --a BENCH --b BENCH {TINY} --mem 512M --budget 4s --no-charts -o gate"),
}


class Faults:
    def __init__(self, args):
        self.args = args
        self.folder = os.path.join(args.work, "run")
        self.env = dict(os.environ, SLMBENCH_LOCK="none", SLMBENCH_PROGRESS="none",
                        SLMBENCH_CACHE=os.path.join(args.work, "cache"),
                        TMPDIR=os.path.join(args.work, "run", "tmp"), LC_ALL="C")
        self.outcomes = collections.Counter()
        self.broken = []
        self.rows = 0  # that the table holds before the command

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
                self.bench(*SWEEP)
            if "part" in what:
                path = os.path.join(self.folder, "sw", "sweep.csv")
                lines = open(path).readlines()
                open(path, "w").writelines(lines[:-1])
            shutil.copytree(self.folder, made)
        self.before = self.files()
        self.rows = self.table()[0]

    def files(self):
        return {os.path.relpath(os.path.join(d, f), self.folder)
                for d, _, names in os.walk(self.folder) for f in names}

    def table(self):
        """Rows of sweep.csv, and what is wrong with it."""
        path = os.path.join(self.folder, "sw", "sweep.csv")
        if not os.path.exists(path):
            return 0, None
        with open(path, newline="") as f:
            rows = list(csv.reader(f))
        if any(len(r) != len(rows[0]) for r in rows):
            return len(rows) - 1, "sweep.csv has rows of different lengths"
        return max(len(rows) - 1, 0), None

    def run(self, arguments, kind="none", fault="none", at="0"):
        path = os.path.join(self.args.work, "report.json")
        if os.path.exists(path):
            os.unlink(path)
        with open(os.path.join(self.args.work, "out"), "w") as out, \
                open(os.path.join(self.args.work, "err"), "w") as err:
            code = subprocess.run([self.args.runner, path, str(LIMIT_S), kind, fault, at,
                                   "--", self.args.bench, *arguments],
                                  cwd=self.folder, env=self.env, stdout=out, stderr=err,
                                  stdin=subprocess.DEVNULL).returncode
        if code == 77:
            print("skipped: this machine does not allow ptrace")
            sys.exit(77)
        with open(path) as f:
            report = json.load(f)
        with open(os.path.join(self.args.work, "err"), errors="replace") as f:
            report["said"] = [line.strip() for line in f if line.startswith("bench: ")]
        return report

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
        if report["code"] in (2, 3) and not report["said"]:
            yield f"exit code {report['code']} without a sentence"
        if len(report["said"]) > usual + 1:
            yield f"{len(report['said'])} sentences: {' | '.join(report['said'])}"
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

    def positions(self, count):
        n = min(self.args.positions, count)
        if n < 2:
            return [1][:count]
        return sorted({1 + round((count - 1) * i / (n - 1)) for i in range(n)})

    def command(self, name):
        what, arguments = COMMANDS[name]
        arguments = arguments.replace("BENCH", self.args.bench).split()
        self.prepare(what)
        plain = self.run(arguments)
        usual = len(plain["said"])
        if plain["code"] not in (0, 1, 4) or plain["left"]:
            print(f"{name}: not undisturbed: {plain}")
            sys.exit(77 if plain["code"] == 3 else 1)
        for kind in self.args.kinds:
            for fault in FAULTS[kind]:
                if self.args.faults and fault not in self.args.faults:
                    continue
                for at in self.positions(plain["count"][kind]):
                    self.one(name, what, arguments, kind, fault, str(at), usual)
                    if fault != "EINTR":  # which for ever is no end of anything
                        self.one(name, what, arguments, kind, fault, f"{at}+", usual)

    def one(self, name, what, arguments, kind, fault, at, usual):
        self.prepare(what)
        report = self.run(arguments, kind, fault, at)
        if not report["failed"]:
            return  # this time there were fewer calls
        end = ("hang" if report["timed_out"] else f"signal {report['signal']}"
               if report["signal"] else f"exit {report['code']}")
        self.outcomes[name, kind, fault, end] += 1
        for promise in self.promises(report, usual, at.endswith("+")):
            line = f"{name}: {kind} {fault} {at} {report['where']}: {promise}"
            if report["said"]:
                line += f" [{report['said'][-1]}]"
            self.broken.append(line)
            print("BROKEN", line, flush=True)

    def print_table(self):
        ends = sorted({key[3] for key in self.outcomes})
        rows = collections.defaultdict(collections.Counter)
        for (name, kind, fault, end), n in self.outcomes.items():
            rows[name, kind, fault][end] += n
        print(f"{'command':10} {'call':9} {'fault':7}", *(f"{e:>9}" for e in ends))
        for key in sorted(rows):
            print("{:10} {:9} {:7}".format(*key), *(f"{rows[key][e] or '':>9}" for e in ends))
        print(f"{sum(self.outcomes.values())} faults, {len(self.broken)} broken promises")


def main():
    def listed(text):
        return text.split(",")

    p = argparse.ArgumentParser()
    for name in ("runner", "bench", "src", "work"):
        p.add_argument(name)
    p.add_argument("--positions", type=int, default=40)
    p.add_argument("--commands", type=listed, default=list(COMMANDS))
    p.add_argument("--kinds", type=listed, default=list(FAULTS))
    p.add_argument("--faults", type=listed, default=[])
    faults = Faults(p.parse_args())
    os.makedirs(faults.args.work, exist_ok=True)
    for name in faults.args.commands:
        faults.command(name)
    faults.print_table()
    sys.exit(1 if faults.broken else 0)


main()
