// Package kill proves what survives kill -9: real programs on a real Redis that syncs every write, both killed again
// and again while rows are claimed. Afterwards each row must have ended once, and history must tell how.
//
// By default the tests are short. UMBEL_TEST_FULL=1 makes them as long as the promise, UMBEL_TEST_SEED=n repeats
// what a failed one did, as far as processes let themselves be repeated.
package kill
