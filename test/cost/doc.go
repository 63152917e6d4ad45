// Package cost measures what a row costs, as ratios within one run: Redis's CPU time against a bare version of the
// same storage (spans), bytes at rest, the memory of the process, the price of types and of open runs. Its tests fail
// where a promised ratio is missed; -v prints every figure.
package cost
