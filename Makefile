# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
SHELL := bash
PYTHON_ENV := .venv/bin/python
RUN_TESTS := tools/bazel/run_tests
RISCV := riscv64-linux-gnu
RISCV_CPUS := rv64,v=true,vlen=128|256|512
C_FILES = $(shell find backends core examples runtime_c tests tools -name '*.[ch]' -o -name '*.cc' -o -name '*.[ch]pp')

.NOTPARALLEL:
.PHONY: help setup setup-torch setup-bench setup-qemu demo test test-all test-asan test-ubsan \
  test-tsan ci lint format wheels check-wheels conformance conformance-cross numerics bench \
  bench-ablation bench-cross fuzz clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup:  ## system packages, .venv, the runtime's extension and bitcode
	tools/setup

setup-torch:
	tools/setup torch sklearn

setup-bench:
	tools/setup torch bench

setup-qemu:
	tools/setup qemu

demo: setup  ## compile a real model, check it, time it, call it from Python and C
	$(PYTHON_ENV) -m tools.demo

test: setup  ## the fast tests, about 11 minutes on two cpus
	$(RUN_TESTS) tests //... --build_tests_only --test_tag_filters=-slow

ci: lint test-all test-asan test-ubsan test-tsan check-wheels  ## everything: lint, all tests, sanitizers, wheels

test-all: setup-torch
	$(RUN_TESTS) tests //...

test-asan test-ubsan test-tsan: test-%: setup
	$(RUN_TESTS) $* //... --config=$*

lint: setup-torch  ## ruff, mypy, clang-format
	$(PYTHON_ENV) -m ruff check .
	$(PYTHON_ENV) -m ruff format --check .
	$(PYTHON_ENV) -m mypy
	$(if $(C_FILES),.venv/bin/clang-format --dry-run -Werror $(C_FILES))

format: setup  ## rewrite the sources in the house's format
	$(PYTHON_ENV) -m ruff check --fix .
	$(PYTHON_ENV) -m ruff format .
	$(if $(C_FILES),.venv/bin/clang-format -i $(C_FILES))

wheels: setup  ## the wheels of all distributions, into dist/
	tools/bazelw build $$(tools/bazelw query 'kind("^wheel rule$$", //...)' 2>/dev/null)
	rm -rf dist && mkdir dist
	cp $$(find .bazel/bin/ -path '*/wheel/*.whl') dist/
	chmod u+w dist/*.whl && ls -l dist

check-wheels: wheels
	mkdir -p build
	$(PYTHON_ENV) -m pytest -c pytest.ini -q --junitxml=build/wheels.xml tests/wheels; status=$$?; \
	  $(PYTHON_ENV) tools/bazel/count_tests.py xml build/test-counts wheels build/wheels.xml; exit $$status

conformance: setup  ## the score in ONNX's own test suite, in every form, beside ONNX Runtime
	$(PYTHON_ENV) -m tools.conformance --all --write

conformance-cross: setup-qemu  ## the suite and the zoo's models on emulated Arm and RISC-V
	$(PYTHON_ENV) -m tools.conformance --machine aarch64-linux-gnu
	$(PYTHON_ENV) -m tools.conformance --machine '$(RISCV):$(RISCV_CPUS):rvv'
	$(PYTHON_ENV) -m tools.verify_models --target aarch64-linux-gnu
	$(PYTHON_ENV) -m tools.verify_models --target $(RISCV) --cpu '$(RISCV_CPUS)'

numerics: setup  ## the largest error of every scalar function over all float32, for the docs
	nice $(PYTHON_ENV) -m tools.numerics --write

bench: setup-bench  ## speed beside the installed peers; BENCH=--quick, BENCH=--publish
	$(PYTHON_ENV) -m tools.bench $(BENCH)

bench-cross: setup-qemu  ## kernels for other machines, as llvm-mca sees them; instructions, sizes of models
	$(PYTHON_ENV) -m tools.bench.cross

bench-ablation: setup-bench  ## what each optimisation is worth, on BERT and ResNet-50
	$(PYTHON_ENV) -m tools.bench.ablation $(BENCH)

fuzz: setup  ## damaged models, random ONNX models, 20,000 random graphs: hours
	$(PYTHON_ENV) -m tools.fuzz

clean:  ## remove what was built, keep .venv
	-tools/bazelw clean
	rm -rf build dist .bazel .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find core backends runtime_c tools tests \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +
	find backends runtime_c \( -name '*.so' -o -name '*.bc' \) -delete
