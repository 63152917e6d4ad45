// Package remote is the Engine over the network: it calls the servers that it was given through the generated client
// of api/umbel/v1. client.Dial makes one.
package remote
