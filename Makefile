# Each target does its own set-up; a fresh Debian 12 needs only Rust, a C compiler, make and apt.
SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET)/release

.PHONY: help demo demo-run test lint doc book bench gpu install uninstall setup clean

help:
	@echo "make demo   build, PageRank on a real graph with 4 PEs against 1, a short perf"
	@echo "make test   every test, with the time of each stage (budget: 20 minutes on 2 cores)"
	@echo "make lint   rustfmt, layers, clippy, documentation, licences"
	@echo "make doc    API documentation in $(TARGET)/doc"
	@echo "make book   this documentation as a book, in $(TARGET)/book"
	@echo "make bench  measure against Open MPI's OpenSHMEM, UCX and the machine's limits"
	@echo "make gpu    tests and benchmarks on this machine's GPU (ci/gpu --help: without Rust there)"
	@echo "make install PREFIX=DIR   the OpenSHMEM library, its headers and pages, oshcc, oshc++ and oshrun,"
	@echo "                           and NVSHMEM's names in DIR/lib/nvshmem"
	@echo "                           (STRIP=no keeps symbols; make uninstall PREFIX=DIR removes it)"
	@echo "make setup  install the Debian packages that are missing"
	@echo "make clean  remove what was built"

setup:
	@ci/setup

demo: setup
	cargo build --release -p oxshmem-cli -p oxshmem-examples
	@$(MAKE) --no-print-directory demo-run

demo-run:
	$(BIN)/pagerank --pes 1 --save $(TARGET)/demo-one-pe.ranks
	$(BIN)/pagerank --pes 4 --check --compare $(TARGET)/demo-one-pe.ranks
	$(BIN)/oxshmem perf --quick

test: setup
	@ci/stage "all stages of make test" 1200 ci/test

lint: setup
	@ci/lint

doc: setup
	cargo doc --workspace --no-deps

book:
	@ci/book

bench: setup
	benches/peers

gpu:
	@ci/gpu

PREFIX ?= /usr/local
install:
	cargo build --release -p oxshmem-capi -p oxshmem-cli -p oxshmem-softcudart -p oxshmem-softcuda -p oxshmem-nvshmem
	core/capi/install $(if $(filter no,$(STRIP)),--keep-symbols) $(BIN) $(DESTDIR)$(PREFIX)

uninstall:
	core/capi/uninstall $(DESTDIR)$(PREFIX)

clean:
	cargo clean
