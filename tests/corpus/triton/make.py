"""Compiles the Triton kernels of this folder without a GPU: PTX for sm_80, which every later GPU takes, and the sm_90 cubins asked for.

    python3 make.py [NAME.py ...]        needs triton 3.6.0, nothing else

Each PTX opens with a comment that gives the command and the SHA-256 of its source; launch metadata goes into NAME_triton.json, as the
generator's cache would hold it. Cubins are printed as "source-hash cubin-hash command", for cubins.sha256.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

# No line information, which would name the folder that this ran in, and nothing from an earlier run's cache.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
CACHE = tempfile.TemporaryDirectory(prefix="kgate-triton-")
os.environ["TRITON_CACHE_DIR"] = CACHE.name

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).resolve().parent
CUBINS = {"softmax", "rmsnorm"}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def build(module, how, arch):
    place = list(module.SIGNATURE).index
    constexprs = {(place(name),): value for name, value in how["constants"].items()}
    attrs = {(place(name),): [["tt.divisibility", 16]] for name in how.get("divisible_by_16", [])}
    source = ASTSource(fn=module.KERNEL, signature=module.SIGNATURE, constexprs=constexprs, attrs=attrs)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": how["num_warps"]})


def make(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source_hash = sha256(path.read_bytes())
    for name, how in module.BUILDS.items():
        made = build(module, how, 80)
        head = f"// triton {triton.__version__}, sm_80: python3 make.py {path.name}; SHA-256 of the source: {source_hash}\n"
        (HERE / f"{name}_triton.ptx").write_text(head + made.asm["ptx"])
        keep = ("name", "num_warps", "num_ctas", "shared", "global_scratch_size", "profile_scratch_size", "triton_version")
        metadata = {key: getattr(made.metadata, key, None) for key in keep} | {"target": "cuda:80:32"}
        (HERE / f"{name}_triton.json").write_text(json.dumps(metadata, indent=2) + "\n")
        if name in CUBINS:
            cubin = build(module, how, 90).asm["cubin"]
            file = HERE / f"{name}_triton.sm_90.cubin"
            file.write_bytes(cubin)
            print(source_hash, sha256(cubin), f"triton {triton.__version__} sm_90 -o triton/{file.name} triton/{path.name}")


if __name__ == "__main__":
    if triton.__version__ != "3.6.0":
        sys.exit(f"make.py: triton 3.6.0 is needed, found {triton.__version__}")
    chosen = sys.argv[1:] or sorted(p.name for p in HERE.glob("*.py") if p.name != "make.py")
    for file in chosen:
        make(HERE / file)
