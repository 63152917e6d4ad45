// Package newcomer holds the test of README's words: test/newcomer.sh follows them, from a clone to a fan-out over two
// workers.
package newcomer
