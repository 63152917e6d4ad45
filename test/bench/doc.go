// Package bench measures Umbel beside the least that somebody would write by hand (internal/floor), in turns within
// one run on one Redis that appends to its file every second. Each contestant runs in processes that it starts afresh,
// so that none inherits another's heap or connections. Figures of one machine say little; their ratios do.
//
//	go test -run '^$' -bench . ./test/bench
//
// It prints a table: rows a second from the first enqueued to the last acknowledged, how long a row takes from the
// client to the handler while 200 a second are started, how fast a fan-out is staged and committed, and what a row
// costs Redis. An ordinary test runs a short form and fails if a figure is missing or cannot be.
//
// UMBEL_BENCH_ROWS, UMBEL_BENCH_STARTED, UMBEL_BENCH_PACED and UMBEL_BENCH_ROUNDS replace the numbers of
// [fullScale]; UMBEL_BENCH_PROFILE names a directory for a CPU profile of each process.
package bench
