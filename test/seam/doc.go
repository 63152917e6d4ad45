// Package seam tests the seam between clients, workers and servers over the network: the conformance suite of
// umbel.Engine, hand-over, failover, hostile peers and other versions.
package seam
