# The front door. `make demo` and `make test` install what is missing, build, and run.
BUILD ?= build
JOBS  ?= $(shell nproc)

.PHONY: demo test build dist bench setup clean

setup:
	@scripts/install-dependencies.sh

build: setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo $(CMAKE_FLAGS)
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@KGATE_BIN=$(abspath $(BUILD))/bin scripts/demo.sh

test: build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

dist: build
	@scripts/make-dist.sh $(BUILD)

bench: build
	@scripts/bench.sh $(BUILD)

clean:
	@rm -rf $(BUILD) dist kgate-out
