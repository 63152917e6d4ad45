// Package wire turns the values of the Engine seam into the messages of api/umbel/v1 and back. It is the only
// package that knows both. Nothing is checked here but what a message can say and a value cannot: what is out of
// range passes on, for the server to refuse by name.
package wire
