// Package jobs has the jobs that people come to Umbel for, as they would write them: each file is one, and its tests
// run it under umbeltest in virtual time.
package jobs
