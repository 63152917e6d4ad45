// Package protocol holds the tests of what docs/protocol.md says: its commands run as they are written, with nothing
// but a shell and curl.
package protocol
