// Package check draws schedules of runs and faults from a seed, plays each against servers, workers and clients in
// virtual time, and then holds history, results and Redis to the promises.
package check
