"""Makes the files of this folder that are no kernels: `python3 make.py`. Deterministic; needs the standard library only.

truncated.ptx ends inside a function body, truncated.cubin before its section table, random.* start like nothing at all, amd.hsaco is an
ELF file for machine 224 (AMD GPU) with nothing behind its header, and header.cubin a cubin's ELF header that promises sections past
the end of the file.
"""

import pathlib
import random
import struct

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent


def elf_header(machine: int, section_offset: int, sections: int) -> bytes:
    ident = b"\x7fELF" + bytes([2, 1, 1, 64 if machine == 224 else 51]) + bytes(8)
    return ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, section_offset, 0, 64, 0, 0, 64, sections, 0)


def main() -> None:
    ptx = (CORPUS / "softmax_good.ptx").read_bytes()
    cubin = (CORPUS / "softmax_good.sm_90.cubin").read_bytes()
    files = {
        "empty.ptx": b"",
        "truncated.ptx": ptx[: ptx.index(b"bar.sync")] + b"bar.sy",
        "random.ptx": random.Random(1).randbytes(4096),
        "random.cubin": random.Random(2).randbytes(4096),
        "truncated.cubin": cubin[: len(cubin) // 2],
        "header.cubin": elf_header(190, 1 << 40, 40000),
        "amd.hsaco": elf_header(224, 0, 0),
    }
    for name, content in files.items():
        (HERE / name).write_bytes(content)


if __name__ == "__main__":
    main()
