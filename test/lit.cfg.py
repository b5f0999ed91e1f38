import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "norm"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Corpus/a", "Corpus/d", "Corpus/e", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.norm_obj_root, "test")

llvm_config.with_system_environment(["HOME", "TMP", "TEMP"])
llvm_config.use_default_substitutions()
llvm_config.with_environment("PATH", config.norm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("FILECHECK_OPTS", "-enable-var-scope")
llvm_config.with_environment("NORM_BUILD_DIR", config.norm_obj_root)

if config.norm_sanitize:
    config.available_features.add("sanitize")

config.substitutions.append(("%norm_lib_dir", config.norm_lib_dir))
config.substitutions.append(("%mlir_lib_dir", config.mlir_lib_dir))
config.substitutions.append(("%norm_src_root", config.norm_src_root))
config.substitutions.append(
    ("%python", config.python_executable or "/usr/bin/python3"))

# NORM_VERIFY_ROUNDTRIP=1 (or --param verify_roundtrip=1) makes every norm-opt
# also print, reparse and compare its input, as text and as bytecode.
verify_roundtrip = os.environ.get(
    "NORM_VERIFY_ROUNDTRIP", lit_config.params.get("verify_roundtrip", "0")
)
norm_opt_args = ["--verify-roundtrip"] if verify_roundtrip == "1" else []

llvm_config.add_tool_substitutions(
    [
        ToolSubst("norm-opt", extra_args=norm_opt_args, unresolved="ignore"),
        ToolSubst("norm-run", unresolved="ignore"),
        ToolSubst("norm-lsp-server", unresolved="ignore"),
        ToolSubst("mlir-opt", unresolved="ignore"),
        ToolSubst("mlir-runner", unresolved="ignore"),
        ToolSubst("mlir-translate", unresolved="ignore"),
        ToolSubst("opt", unresolved="ignore"),
        ToolSubst("llc", unresolved="ignore"),
        ToolSubst("llvm-objdump", unresolved="ignore"),
    ],
    [config.norm_tools_dir, config.llvm_tools_dir],
)
