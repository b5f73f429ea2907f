# How a benchmark program is built; the job's Makefile says `PROGRAM = …` and includes this.
MPICC ?= mpicc
CFLAGS ?= -O2
WARNINGS = -std=c11 -Wall -Wextra -Werror
COMMON = ../common

.PHONY: all clean FORCE
all: build/$(PROGRAM)

build/$(PROGRAM): $(PROGRAM).c $(COMMON)/bench.c $(COMMON)/bench.h $(COMMON)/rules.mk Makefile build/compiler
	$(MPICC) $(WARNINGS) $(CFLAGS) -I$(COMMON) -o $@ $< $(COMMON)/bench.c

# The program names its MPI library by path, so another compiler means another program.
build/compiler: FORCE
	@mkdir -p build
	@echo '$(MPICC) $(CFLAGS)' | cmp -s - $@ || echo '$(MPICC) $(CFLAGS)' > $@

clean:
	rm -rf build
