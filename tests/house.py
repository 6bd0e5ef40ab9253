#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# house.py - the house as CONTRIBUTING.md draws it: who may include whom
#
# usage: house.py SOURCE_DIR ROOMS COMPILER
# ROOMS is generated/rooms.txt of a build, a line "library folder used..." for each
# room. Checked of every C file: that it includes headers of its own room and of those
# that its room's link line reaches, and nothing else of the house; that in the harness
# these rooms are in the same wing or in one below (WINGS); that a header is the
# first thing included somewhere in its room, or compiles by itself; and that no folder
# has more than 40 files, but those of data, a file per name. And only topology_cache()
# answers how large the cache is.
import concurrent.futures
import os
import re
import subprocess
import sys

MAX_FILES = 40
source, table, compiler = sys.argv[1:4]
os.chdir(source)
failures = []

# Wings of the harness from the ground up; those of one line never see each other.
WINGS = [["base"], ["stats", "chart"], ["machine"], ["client"], ["model"], ["rows"],
         ["measure", "judge"], ["show"], ["serve", "decide"], ["cmd"]]
rank = {wing: level for level, wings in enumerate(WINGS) for wing in wings}

folder_of, used_by = {}, {}
for line in open(table):
    library, folder, *used = line.split()
    folder_of[library], used_by[library] = folder, used


def reached(library):
    """Folders that a room may include from: its own, and all that it uses."""
    folders = {folder_of.get(library, "kernels")}
    for used in used_by.get(library, []):
        folders |= reached(used)
    return folders


def wing(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "harness" else None


def is_above(folder, include):
    """Whether the folder's wing may see the file's."""
    mine, other = wing(folder), wing(include)
    return not mine or not other or mine == other or rank[other] < rank[mine]


def quoted_includes(path):
    with open(path, encoding="utf-8") as f:
        return re.findall(r'^\s*#\s*include "((?:kernels|engine|harness|research|tests)/[^"]+)"',
                          f.read(), re.M)


def allowed(include, folders):
    folder = os.path.dirname(include)
    return folder in folders or (folder.split("/")[0] == "kernels" and "kernels" in folders)


first = set()  # headers that some file of the house includes before anything else
headers = []
rooms = [(f, reached(library)) for library, f in folder_of.items()]
rooms += [(d, {"kernels"}) for d, _, _ in os.walk("kernels")]
for folder, folders in rooms:
    if folder != "kernels" and folder.startswith("kernels/"):
        folders = folders | {folder}
    for name in sorted(os.listdir(folder)):
        path = folder + "/" + name
        if not name.endswith((".c", ".h", ".cc")) or not os.path.isfile(path):
            continue
        includes = quoted_includes(path)
        if name.endswith(".h"):
            headers.append(path)
        elif includes:
            first.add(includes[0])
        for include in includes:
            if not os.path.exists(include):
                failures.append(f"{path} includes {include}, which is not there")
            elif not allowed(include, folders):
                failures.append(f"{path} includes {include}, which is not below {folder}: "
                                f"the link line of {folder} says whom it may use")
            elif not is_above(folder, include):
                failures.append(f"{path} includes {include}: harness/{wing(include)} is not "
                                f"below harness/{wing(folder)} (WINGS)")


# Sizes in a description of the machine: set anywhere, read in its own room.
SIZE_READ = re.compile(r"\btopo(?:->|\.)llc_\w+(?!\w)(?!\s*=[^=])")
for folder in folder_of.values():
    for name in os.listdir(folder):
        path = folder + "/" + name
        if folder != "harness/machine" and name.endswith((".c", ".h", ".cc")):
            with open(path, encoding="utf-8") as f:
                failures += [f"{path}: {found} is not how large the cache is: "
                             "topology_cache() answers that" for found in SIZE_READ.findall(f.read())]


def compiles_alone(header):
    command = compiler.split() + ["-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-I.",
                                  "-I" + os.path.dirname(table), "-x", "c", "-"]
    done = subprocess.run(command, input=f'#include "{header}"\nint not_empty;\n',
                          capture_output=True, text=True)
    return header, done.returncode == 0, done.stderr


alone = [h for h in headers if h not in first and not h.startswith("kernels/")]
with concurrent.futures.ThreadPoolExecutor() as pool:
    for header, ok, why in pool.map(compiles_alone, alone):
        if not ok:
            failures.append(f"{header} does not compile alone: {why.strip().splitlines()[0]}")

listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True)
counts = {}
for path in listed.stdout.splitlines():
    if not path.startswith(("tests/data/", "results/", "configs/models/")):
        counts[os.path.dirname(path)] = counts.get(os.path.dirname(path), 0) + 1
for folder, n in sorted(counts.items()):
    if n > MAX_FILES:
        failures.append(f"{folder} has {n} files; {MAX_FILES} are the most")

print(f"{len(rooms)} rooms, {len(headers)} headers, {len(alone)} of them compiled alone")
for failure in failures:
    print("house.py:", failure)
sys.exit(1 if failures else 0)
