// Embedded is an application with everything inside: a server, a worker and a client, on the Redis whose URL it is
// given, else on one in this process.
//
//	embedded [REDIS-URL]
//	curl --data-binary @poem.txt http://127.0.0.1:…
//
// It counts the words of each line that it is sent. Ctrl-C and SIGTERM stop it gracefully.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// CountWords is the contract between client and worker.
var CountWords = umbel.Define[string, int]("count-words")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, redisURL string) error {
	rdb, closeRedis, err := connect(redisURL)
	if err != nil {
		return err
	}
	defer closeRedis()
	engine, err := server.Open(ctx, rdb, server.Config{})
	if err != nil {
		return err
	}
	defer engine.Close()
	w, err := worker.New(engine, worker.Config{})
	if err != nil {
		return err
	}
	worker.Handle(w, CountWords, func(_ context.Context, line string) (int, error) {
		return len(strings.Fields(line)), nil
	})
	c, err := client.New(engine, client.Config{})
	if err != nil {
		return err
	}
	worked := make(chan error, 1)
	go func() { worked <- w.Run(context.WithoutCancel(ctx)) }() // it ends by Drain, below
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: app{c}, ReadHeaderTimeout: time.Second}
	go web.Serve(listener) //nolint:errcheck // it ends by Shutdown, below
	fmt.Printf("listening on http://%s\n", listener.Addr())

	<-ctx.Done()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	// Who waits for results first, then who makes them; the server, which both need, last.
	return errors.Join(web.Shutdown(patience), w.Drain(patience), <-worked)
}
