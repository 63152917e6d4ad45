package main

import (
	"bufio"
	"fmt"
	"iter"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
)

// app is the application: it answers a request with the words of each of its lines.
type app struct{ client *client.Client }

func (a app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	items := client.TryMap(lines(r), func(line string) umbel.Item[string] { return umbel.Item[string]{Input: line} })
	run, err := client.FanOutItems(r.Context(), a.client, CountWords, items)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	counts, err := run.Gather(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, n := range counts {
		fmt.Fprintln(w, n)
	}
}

// lines yields what a request sends while it is being sent.
func lines(r *http.Request) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := bufio.NewScanner(r.Body)
		for in.Scan() {
			if !yield(in.Text(), nil) {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield("", err)
		}
	}
}

// connect returns a client of the Redis at url, or of one in this process.
func connect(url string) (redis.UniversalClient, func(), error) {
	if url == "" {
		mem := memredis.Open()
		return mem.Client(), mem.Close, nil
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	rdb := redis.NewClient(opts)
	return rdb, func() { _ = rdb.Close() }, nil
}
