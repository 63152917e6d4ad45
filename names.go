package umbel

import (
	"crypto/rand"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type (
	// WorkflowID is the name that a client gives to a workflow. It is unique in its namespace.
	WorkflowID string
	// RunID names one life of a workflow: 128 random bits or more, drawn by the server.
	RunID string
	// StagingID names inputs that are staged but not committed. When they are committed it becomes the
	// run's ID, so that a commit has nothing to rename.
	StagingID = RunID
	// Token proves that a worker holds a row: it carries the run, the claim, the ordinal and the attempt.
	// It is opaque to everybody but the server.
	Token string
	// Cursor is a place in a run's results from which reading can go on, in any process.
	Cursor string
)

// Defaults of the names that a request may leave out.
const (
	DefaultNamespace = "default"
	DefaultTaskQueue = "default"
)

// ValidateName reports why value cannot be the name of what field says (a namespace, task queue, node,
// activity type, workflow ID or key), as an [*Error] with [CodeInvalid], or nil.
//
// A name is valid UTF-8 without control characters, 1 to [MaxNameBytes] bytes long. Everything else is
// allowed: colons, braces, stars, spaces, emoji. It is the only validator: client, worker and server use it.
func ValidateName(field, value string) error {
	var rule string
	switch {
	case value == "":
		rule = "must not be empty"
	case len(value) > MaxNameBytes:
		rule = "must be at most " + strconv.Itoa(MaxNameBytes) + " bytes, has " + strconv.Itoa(len(value))
	case !utf8.ValidString(value):
		rule = "must be valid UTF-8"
	case strings.IndexFunc(value, unicode.IsControl) >= 0:
		rule = "must not contain control characters"
	default:
		return nil
	}
	return Invalid(field, value, rule)
}

// ValidateLabel is [ValidateName] for values that may be empty: a node, an item's key.
func ValidateLabel(field, value string) error {
	if value == "" {
		return nil
	}
	return ValidateName(field, value)
}

// NewRunID draws a run ID: 26 lower-case letters and digits that hold 130 random bits.
func NewRunID() RunID { return RunID(strings.ToLower(rand.Text())) }
