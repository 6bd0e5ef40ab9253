#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cut a small GGUF file into parts, for tests.

    split_gguf.py MODEL.gguf NAME N [--metadata-alone]

Writes NAME-00001-of-0000N.gguf and so on: all metadata in the first, tensors in the
order of the file in all of them, or with --metadata-alone in all but the first.
Standard library only.
"""
import struct
import sys

from make_hf_folder import Gguf


def raw_parts(path):
    """(number of pairs, their bytes), [(name, ne, type, bytes)]"""
    g = Gguf.__new__(Gguf)
    with open(path, "rb") as f:
        g.data = f.read()
    g.at = 4
    _, n_tensors, n_kvs = g.take("<IQQ")
    begin = g.at
    for _ in range(n_kvs):
        g.pair()
    pairs = g.data[begin:g.at]
    infos = [g.info() for _ in range(n_tensors)]
    base = (g.at + 31) // 32 * 32
    ends = sorted(i[3] for i in infos) + [len(g.data) - base]
    return (n_kvs, pairs), [
        (name, ne, kind, g.data[base + at:base + ends[ends.index(at) + 1]])
        for name, ne, kind, at in infos]


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def write(path, kvs, tensors, number, count, total):
    n, pairs = kvs
    pairs += text("split.no") + struct.pack("<IH", 2, number)
    pairs += text("split.count") + struct.pack("<IH", 2, count)
    pairs += text("split.tensors.count") + struct.pack("<Ii", 5, total)
    infos, data = b"", b""
    for name, ne, kind, raw in tensors:
        infos += text(name) + struct.pack("<I%dQIQ" % len(ne), len(ne), *ne, kind,
                                          len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n + 3) + pairs + infos
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


def main():
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kvs, tensors = raw_parts(path)
    alone = len(sys.argv) > 4
    with_tensors = count - alone
    for i in range(count):
        k = i - alone
        part = [] if k < 0 else tensors[len(tensors) * k // with_tensors:
                                        len(tensors) * (k + 1) // with_tensors]
        write("%s-%05d-of-%05d.gguf" % (name, i + 1, count),
              kvs if i == 0 else (0, b""), part, i, count, len(tensors))


if __name__ == "__main__":
    main()
