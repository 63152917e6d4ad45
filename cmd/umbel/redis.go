package main

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// poolSize is how many connections to a Redis may be open: a server's loops, and the calls of many clients. They
// are opened as they are needed.
const poolSize = 128

// redisForms says what --redis takes.
const redisForms = `redis://[user:password@]host:port[/db], rediss:// for TLS, unix:///path/to/socket,
redis+cluster://host:port[,host:port…], redis+sentinel://host:port[,host:port…]?master_name=NAME`

// openRedis returns a client of the Redis that a URL names. It makes no call. Settings of the connection may be
// given in the URL's query, as in ?read_timeout=5s&pool_size=50.
func openRedis(address string) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil, usagef("--redis %q: must be one of %s", redact(address), redisForms)
	}
	scheme, kind, _ := strings.Cut(scheme, "+")
	var (
		client redis.UniversalClient
		err    error
	)
	switch {
	case kind == "cluster":
		var o *redis.ClusterOptions
		if o, err = redis.ParseClusterURL(scheme + "://" + manyHosts(rest)); err == nil {
			o.ContextTimeoutEnabled = true
			o.PoolSize = cmp.Or(o.PoolSize, poolSize)
			client = redis.NewClusterClient(o)
		}
	case kind == "sentinel":
		var o *redis.FailoverOptions
		if o, err = redis.ParseFailoverURL(scheme + "://" + manyHosts(rest)); err == nil {
			if o.MasterName == "" {
				return nil, usagef("--redis %q: names no master: add ?master_name=NAME", redact(address))
			}
			o.ContextTimeoutEnabled = true
			o.PoolSize = cmp.Or(o.PoolSize, poolSize)
			client = redis.NewFailoverClient(o)
		}
	case kind != "":
		return nil, usagef("--redis %q: must be one of %s", redact(address), redisForms)
	default:
		var o *redis.Options
		if o, err = redis.ParseURL(address); err == nil {
			o.ContextTimeoutEnabled = true
			o.PoolSize = cmp.Or(o.PoolSize, poolSize)
			client = redis.NewClient(o)
		}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the rest holds the password
	}
	if err != nil {
		return nil, usagef("--redis %q: %s; must be one of %s", redact(address), strings.TrimPrefix(err.Error(), "redis: "), redisForms)
	}
	return client, nil
}

// manyHosts turns user@a:1,b:2/path?query into what go-redis reads: the hosts but the first as the query's addr.
func manyHosts(rest string) string {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i+1], authority[i+1:]
	}
	first, others, many := strings.Cut(authority, ",")
	if !many {
		return rest
	}
	path, query, _ := strings.Cut(tail, "?")
	for host := range strings.SplitSeq(others, ",") {
		if query != "" {
			query += "&"
		}
		query += "addr=" + url.QueryEscape(host)
	}
	return user + first + path + "?" + query
}

// redact hides a password.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		if i := strings.LastIndexByte(address, '@'); i >= 0 {
			return "…" + address[i:]
		}
		return address
	}
	return u.Redacted()
}
