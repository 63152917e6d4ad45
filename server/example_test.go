package server_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/server"
)

// A server is opened in the process that uses it. Every process may have one of its own: all of them work on what
// is in Redis.
func ExampleOpen() {
	ctx := context.Background()
	rdb := connect() // redis.NewClient, NewFailoverClient or NewClusterClient
	defer rdb.Close()

	engine, err := server.Open(ctx, rdb, server.Config{Lease: 10 * time.Second, Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	fmt.Println("lease", engine.Lease())
	// Output: lease 10s
}

// The lease belongs to the installation: a server that names none takes the one that is stored.
func ExampleServer_Lease() {
	ctx := context.Background()
	rdb := connect()
	defer rdb.Close()

	first, err := server.Open(ctx, rdb, server.Config{Prefix: "reports", Lease: time.Minute, Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	second, err := server.Open(ctx, rdb, server.Config{Prefix: "reports", Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	fmt.Println(second.Lease())
	// Output: 1m0s
}

// A closed server refuses calls. What workers hold stays claimed, for them to report to another server.
func ExampleServer_Close() {
	ctx := context.Background()
	rdb := connect()
	defer rdb.Close()

	engine, err := server.Open(ctx, rdb, server.Config{Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Close(); err != nil {
		fmt.Println(err)
	}
	_, err = engine.Describe(ctx, umbel.DescribeRequest{Namespace: "default", WorkflowID: "w"})
	fmt.Println(errors.Is(err, umbel.ErrUnavailable), err)
	// Output: true umbel: describe: the server is closed
}
