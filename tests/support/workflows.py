# SPDX-License-Identifier: MIT
"""workflows.py - are the workflow files sound, and run one of their jobs here

usage: workflows.py check BENCH [FILE...]          (default: every workflow of the tree)
       workflows.py schema SCHEMA.json FILE...     (needs python3-jsonschema)
       workflows.py run FILE JOB CONTEXT.json DIR
       workflows.py action action.yml CONTEXT.json DIR

`run` runs a job's scripts in DIR as a runner would, with one shell per step (GitHub) or
one in all (GitLab). Steps that use an action are left out. CONTEXT.json holds what
expressions may ask for: {"github": {..}, "inputs": {..}, ..}. `action` runs the steps of
a composite action, with the files that the runner documents ($GITHUB_OUTPUT and
$GITHUB_STEP_SUMMARY), and prints its outputs as JSON.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.S)
CONTEXTS = {"github", "env", "vars", "secrets", "inputs", "matrix", "steps", "needs",
            "runner", "job", "strategy"}
FUNCTIONS = {"always", "success", "failure", "cancelled", "contains", "startsWith",
             "endsWith", "format", "join", "toJSON", "fromJSON", "hashFiles"}
GITHUB_TOP = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency",
              "jobs"}
GITHUB_JOB = {"name", "needs", "if", "runs-on", "permissions", "env", "steps", "outputs",
              "timeout-minutes", "strategy", "continue-on-error", "concurrency",
              "container", "defaults"}
GITHUB_STEP = {"name", "id", "if", "uses", "with", "run", "env", "shell",
               "working-directory", "continue-on-error", "timeout-minutes"}
GITLAB_TOP = {"include", "stages", "variables", "default", "workflow"}
GITLAB_JOB = {"image", "stage", "rules", "variables", "cache", "timeout", "tags",
              "interruptible", "before_script", "script", "after_script", "needs",
              "allow_failure", "artifacts", "resource_group", "extends"}


ACTION_TOP = {"name", "description", "author", "branding", "inputs", "outputs", "runs"}


def is_action(path):
    return os.path.basename(path) == "action.yml"


def is_github(path):
    return "github" in path.split(os.sep)[-2] or ".github" in path


def with_inputs(spec, body):
    """A component of GitLab with its inputs' defaults, or their names without one."""
    inputs = yaml.safe_load(spec)["spec"]["inputs"]
    for name in set(inputs) - set(re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", body)):
        print(f"the component does not use its input '{name}'")
        sys.exit(1)
    return re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]",
                  lambda m: json.dumps(inputs[m[1]].get("default", m[1])), body)


def load(path):
    with open(path) as f:
        text = f.read()
    if "\n---\n" in text:
        text = with_inputs(*text.split("\n---\n"))
    # "on" is a boolean in YAML 1.1, and a key to GitHub
    document = yaml.safe_load(text)
    if is_github(path) and True in document:
        document["on"] = document.pop(True)
    return document, text


# ---- checks ----------------------------------------------------------------------

class Checker:
    def __init__(self, bench):
        self.bench = bench
        self.problems = []
        self.helps = {}

    def say(self, where, message):
        self.problems.append(f"{where}: {message}")

    def keys(self, where, mapping, known):
        for key in set(mapping) - known:
            self.say(where, f"unknown key '{key}'")

    def options_of(self, command):
        """The options that a command of bench, or ci/gate, knows."""
        if command not in self.helps:
            if command == "ci/gate":
                own = subprocess.run([os.path.join(ROOT, "ci/gate"), "--help"],
                                     capture_output=True, text=True).stdout
                known = set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", own)) \
                    | self.options_of("gate")
            else:
                text = subprocess.run([self.bench, *command.split(), "--help"],
                                      capture_output=True, text=True).stdout
                known = set(re.findall(r"(?<![\w-])(--[a-z-]+|-[a-z])(?![\w-])", text))
            self.helps[command] = known
        return self.helps[command]

    def commands(self, where, script):
        """Files that a script names exist; options of bench and ci/gate are known."""
        lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "),
                            posix=True, punctuation_chars=True)
        lexer.commenters = ""
        command, previous = None, ";"
        for word in lexer:
            if re.fullmatch(r"[;&|()<>]+", word):
                command = None if not re.fullmatch(r"[<>]+", word) else command
            elif word == "ci/gate":
                command = word
            elif previous == "bench":
                command = word
                if not self.options_of(word):
                    self.say(where, f"there is no `bench {word}`")
            elif previous == "history" and command == previous and not word.startswith("-"):
                command = f"{previous} {word}"
                if not self.options_of(command):
                    self.say(where, f"there is no `bench {command}`")
            elif word.startswith("-") and command and command != "bench":
                if word not in self.options_of(command):
                    self.say(where, f"{command} has no option {word}")
            if re.fullmatch(r"\.?(ci|configs|tests|harness)/[\w./-]+", word) \
                    and not os.path.exists(os.path.join(ROOT, word)):
                self.say(where, f"there is no file {word}")
            previous = word

    def script(self, where, script):
        run = subprocess.run(["bash", "-n"], input=script, text=True,
                             capture_output=True)
        if run.returncode:
            self.say(where, run.stderr.strip())
        elif any(os.access(os.path.join(d, "shellcheck"), os.X_OK)
                 for d in os.environ["PATH"].split(":")):
            run = subprocess.run(["shellcheck", "-s", "bash", "-"], input=script,
                                 text=True, capture_output=True)
            if run.returncode:
                self.say(where, run.stdout.strip())
        self.commands(where, script)

    # ---- GitHub

    def expressions(self, where, text, scope):
        """scope: context -> the names that are known in it"""
        for body in EXPRESSION.findall(text):
            bare = re.sub(r"'[^']*'", "''", body)
            for name, rest, call in re.findall(
                    r"([A-Za-z_][\w-]*)((?:\.[\w-]+)*)(\()?", bare):
                first = rest.split(".")[1] if rest else ""
                if call and name not in FUNCTIONS:
                    self.say(where, f"unknown function {name}() in ${{{{{body}}}}}")
                elif not call and name not in CONTEXTS | {"true", "false", "null"}:
                    self.say(where, f"unknown context '{name}' in ${{{{{body}}}}}")
                elif name in scope and first not in scope[name]:
                    self.say(where, f"there is no {name}.{first}")
        if text.count("${{") != len(EXPRESSION.findall(text)):
            self.say(where, "an expression does not end")

    def github(self, path, document, text):
        self.keys(path, document, GITHUB_TOP)
        if document.get("permissions") != {"contents": "read"}:
            self.say(path, "permissions are to be 'contents: read' and no more")
        triggers = document.get("on") or {}
        dispatch = (triggers.get("workflow_dispatch") or {}) \
            if isinstance(triggers, dict) else {}
        self.pinned(path, text)
        env = set(document.get("env") or {})
        scope = {"inputs": set(dispatch.get("inputs") or {}), "env": env}
        self.expressions(path, json.dumps({k: v for k, v in document.items()
                                           if k != "jobs"}), scope)
        for name, job in document["jobs"].items():
            self.github_job(f"{path}: {name}", job, document["jobs"], scope)

    def github_job(self, where, job, jobs, scope):
        self.keys(where, job, GITHUB_JOB)
        for key in ("runs-on", "timeout-minutes", "steps"):
            if key not in job:
                self.say(where, f"lacks '{key}'")
        needs = job.get("needs") or []
        needs = {needs} if isinstance(needs, str) else set(needs)
        for missing in needs - set(jobs):
            self.say(where, f"needs the job '{missing}', which is not there")
        scope = dict(scope, needs=needs, env=scope["env"] | set(job.get("env") or {}))
        self.github_steps(where, job.get("steps") or [], scope)

    def github_steps(self, where, steps, scope):
        scope["steps"] = set()
        for i, step in enumerate(steps):
            at = f"{where}: step {i + 1}"
            self.keys(at, step, GITHUB_STEP)
            if ("run" in step) == ("uses" in step):
                self.say(at, "has to have one of 'run' and 'uses'")
            known = dict(scope, env=scope["env"] | set(step.get("env") or {}))
            self.expressions(at, json.dumps(step), known)
            if "if" in step and "${{" not in step["if"]:
                self.expressions(at, "${{" + step["if"] + "}}", known)
            if "run" in step:
                if "${{" in step["run"]:
                    self.say(at, "an expression inside a script lets others write it; "
                                 "hand it over by 'env'")
                self.script(at, step["run"])
            if "id" in step:
                scope["steps"].add(step["id"])

    def pinned(self, path, text):
        for line in re.findall(r"uses: *(.*)", text):
            if not re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line):
                self.say(path, f"'{line}' is not pinned to a commit, with its version "
                               "behind it")

    def action(self, path, document, text):
        self.keys(path, document, ACTION_TOP)
        self.pinned(path, re.sub(r"(?m)^#.*", "", text))
        inputs = document.get("inputs") or {}
        for name, one in inputs.items():
            self.keys(f"{path}: {name}", one, {"description", "required", "default"})
        self.problems += [f"{path}: the input '{name}' is not described, or not used"
                          for name, one in inputs.items()
                          if "description" not in one or f"inputs.{name} " not in text]
        scope = {"inputs": set(inputs), "env": set()}
        steps = document["runs"].get("steps") or []
        self.github_steps(path, steps, scope)
        for name, one in (document.get("outputs") or {}).items():
            self.keys(f"{path}: {name}", one, {"description", "value"})
            self.expressions(f"{path}: {name}", one["value"], scope)
        self.problems += [f"{path}: a step lacks 'shell'" for step in steps
                          if "run" in step and "shell" not in step]

    # ---- GitLab

    def gitlab(self, path, document):
        stages = set(document.get("stages") or ["build", "test", "deploy"])
        jobs = {k: v for k, v in document.items() if k not in GITLAB_TOP}
        if not jobs:
            self.say(path, "has no job")
        for name, job in jobs.items():
            where = f"{path}: {name}"
            self.keys(where, job, GITLAB_JOB)
            if job.get("stage", "test") not in stages:
                self.say(where, f"there is no stage '{job['stage']}'")
            for key in ("script", "rules", "timeout"):
                if key not in job:
                    self.say(where, f"lacks '{key}'")
            for needed in job.get("needs") or []:
                if needed not in jobs:
                    self.say(where, f"needs the job '{needed}', which is not there")
            artifacts = job.get("artifacts") or {}
            junit = (artifacts.get("reports") or {}).get("junit", "")
            if junit.split("/")[0] not in artifacts.get("paths", []):
                self.say(where, f"the JUnit report '{junit}' is in no artifact")
            self.script(where, gitlab_script(job))


def gitlab_script(job):
    lines = list(job.get("before_script") or []) + list(job.get("script") or [])
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def check(bench, paths):
    checker = Checker(bench)
    if not paths:
        paths = sorted(sum((glob.glob(os.path.join(ROOT, d, "*.y*ml"))
                            for d in (".github/workflows", "ci/github", "ci/gitlab", "templates")),
                           [os.path.join(ROOT, "action.yml")]))
        if len(paths) < 7:
            checker.say(ROOT, f"only {len(paths)} workflow files")
    for path in paths:
        document, text = load(path)
        if is_action(path):
            checker.action(path, document, text)
        elif is_github(path):
            checker.github(path, document, text)
        else:
            checker.gitlab(path, document)
    for problem in checker.problems:
        print(problem)
    return 1 if checker.problems else 0


def validate(schema, paths):
    import jsonschema
    with open(schema) as f:
        validator = jsonschema.Draft7Validator(json.load(f))
    bad = 0
    for path in paths:
        for error in validator.iter_errors(load(path)[0]):
            print(f"{path}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
            bad = 1
    return bad


# ---- running ---------------------------------------------------------------------

def evaluate(expression, context):
    """Names, strings, ==, !=, &&, ||, ! and status functions."""
    def look_up(match):
        if match.group(1):
            return match.group(1)
        value = context
        for part in match.group(2).split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return repr(value)

    python = re.sub(r"('[^']*')|([A-Za-z_][\w-]*(?:\.[\w-]+)+)", look_up, expression)
    for old, new in (("&&", " and "), ("||", " or "), (r"!(?!=)", " not ")):
        python = re.sub(re.escape(old) if len(old) == 2 else old, new, python)
    return eval(python, {"__builtins__": {}},  # of our own workflow files
                {"always": lambda: True, "failure": lambda: context["failed"],
                 "success": lambda: not context["failed"], "true": True, "false": False})


def fill_in(text, context):
    return EXPRESSION.sub(lambda m: str(evaluate(m.group(1).strip(), context)), str(text))


def run_github(document, job, context, cwd):
    job = document["jobs"][job]
    context.update(failed=False, steps={}, env={})
    env = dict(os.environ, GITHUB_ACTIONS="true", CI="true")
    for mapping in (document.get("env") or {}, job.get("env") or {}):
        for key, value in mapping.items():
            env[key] = context["env"][key] = fill_in(value, context)
    return run_steps(job["steps"], context, env, cwd)


def run_steps(steps, context, env, cwd):
    for i, step in enumerate(steps):
        name = step.get("name") or step.get("uses") or f"step {i + 1}"
        wanted = step.get("if", "success()")
        if "always()" not in wanted and "failure()" not in wanted:
            wanted = f"success() && ({wanted})"
        if "uses" in step or not evaluate(wanted, context):
            print(f"--- {name}: {'an action' if 'uses' in step else 'skipped'}",
                  flush=True)
            continue
        print(f"--- {name}", flush=True)
        own = {k: fill_in(v, context) for k, v in (step.get("env") or {}).items()}
        with tempfile.NamedTemporaryFile("r") as put_out:
            own["GITHUB_OUTPUT"] = put_out.name
            code = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=cwd,
                                  env={**env, **own}, stdin=subprocess.DEVNULL).returncode
            # NAME=VALUE, one a line
            outputs = dict(line.rstrip("\n").split("=", 1) for line in put_out)
        context["failed"] |= code != 0
        if "id" in step:
            context["steps"][step["id"]] = {"outcome": "failure" if code else "success",
                                            "outputs": outputs}
        print(f"--- {name}: exit code {code}", flush=True)
    return 1 if context["failed"] else 0


def run_action(path, context, cwd):
    """Steps of a composite action; what they put out is printed as JSON."""
    document, _ = load(path)
    with open(context) as f:
        context = json.load(f)
    context.update(failed=False, steps={}, env={})
    context["github"].update(action_path=os.path.dirname(path), workspace=cwd)
    given = context.get("inputs", {})
    context["inputs"] = {name: fill_in(given.get(name, one.get("default", "")), context)
                         for name, one in document["inputs"].items()}
    env = dict(os.environ, GITHUB_ACTIONS="true", CI="true", **context["variables"])
    code = run_steps(document["runs"]["steps"], context, env, cwd)
    print(json.dumps({name: fill_in(one["value"], context)
                      for name, one in document["outputs"].items()}))
    return code


def run_gitlab(document, job, context, cwd):
    """The exit code that makes the job pass (0), warn or fail."""
    job = document[job]
    env = dict(os.environ, GITLAB_CI="true", CI="true", CI_PROJECT_DIR=cwd,
               **context.get("gitlab", {}))
    for key, value in (job.get("variables") or {}).items():
        env[key] = re.sub(r"\$(\w+)", lambda m: env.get(m.group(1), ""), str(value))
    return subprocess.run(["bash", "-eo", "pipefail", "-c", gitlab_script(job)], cwd=cwd,
                          env=env, stdin=subprocess.DEVNULL).returncode


def run(path, job, context, cwd):
    document = load(path)[0]
    with open(context) as f:
        context = json.load(f)
    context.setdefault("github", {}).setdefault("workspace", cwd)
    runner = run_github if is_github(path) else run_gitlab
    return runner(document, job, context, cwd)


if __name__ == "__main__":
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "check":
        sys.exit(check(arguments[0], arguments[1:]))
    elif what == "schema":
        sys.exit(validate(arguments[0], arguments[1:]))
    elif what == "action":
        sys.exit(run_action(*map(os.path.abspath, arguments)))
    else:
        sys.exit(run(*arguments[:3], os.path.abspath(arguments[3])))
