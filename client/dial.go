package client

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/remote"
)

// DefaultPort is the port of a server that an address does not say another of.
const DefaultPort = "7890"

// DialOption changes how [Dial] connects.
type DialOption interface{ applyDial(*dialConfig) }

type dialOption func(*dialConfig)

func (o dialOption) applyDial(c *dialConfig) { o(c) }

type dialConfig struct{ http *http.Client }

// HTTPClient makes calls through hc: for TLS with certificates of one's own, for headers that a proxy wants. It must set
// no Timeout below [umbel.MaxPollWait], and stays the caller's to close. Default, and if hc is nil: one of its own that
// speaks HTTP/1.1, and HTTP/2 over TLS, and heeds the environment's proxy settings.
func HTTPClient(hc *http.Client) DialOption { return dialOption(func(c *dialConfig) { c.http = hc }) }

// Conn is the engine over the network, for [New], [NewAdmin] and worker.New alike; many of them may share one. It is safe
// for concurrent use. Errors are those of [umbel.Engine]; what keeps it from a server is [umbel.ErrUnavailable], what is
// no Umbel server, or one too old for the call, [umbel.ErrUnsupported].
type Conn struct {
	umbel.Engine

	http *http.Client
}

// Dial returns a connection to the servers at urls, a comma-separated list such as "http://a:7890,http://b:7890". It
// makes no call: whether anybody is there shows with the first. An address without scheme is http; one without scheme
// and port has [DefaultPort].
//
// Calls go to one server, at first to any of them; when it is unavailable, or the connection to it breaks, they go on to
// the next. A call tries each server once and gives up a server that is silent for 15 s longer than it was asked to wait;
// clients and workers then repeat it with growing waits. The error has [umbel.CodeInvalid] and names the address that is
// none.
func Dial(urls string, opts ...DialOption) (*Conn, error) {
	var cfg dialConfig
	for _, o := range opts {
		o.applyDial(&cfg)
	}
	servers, err := parseAddresses(urls)
	if err != nil {
		return nil, err
	}
	if cfg.http == nil {
		cfg.http = &http.Client{Transport: newTransport()}
		return &Conn{Engine: remote.New(servers, cfg.http), http: cfg.http}, nil
	}
	return &Conn{Engine: remote.New(servers, cfg.http)}, nil
}

// Close closes the connections that are idle; those of calls under way close with them. Call it when nothing uses the
// Conn any more. It returns nil.
func (c *Conn) Close() error {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	return nil
}

// newTransport returns a transport whose connections stay open between calls, as many as clients of one process use at a
// time.
func newTransport() *http.Transport {
	const (
		dialTimeout = 5 * time.Second // then the next server is tried
		keepAlive   = 15 * time.Second
		idleConns   = 256
	)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        idleConns,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second, // below the two minutes after which a server closes them
		DisableCompression:  true,
	}
}

func parseAddresses(urls string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(urls, ",") {
		u, err := parseAddress(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

func parseAddress(s string) (string, error) {
	const rule = "must be a list of addresses such as http://127.0.0.1:" + DefaultPort + " or host:port, separated by commas"
	text := s
	bare := !strings.Contains(s, "://")
	if bare {
		text = "http://" + s
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return "", umbel.Invalid("address", s, rule)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", umbel.Invalid("address", s, "must have a port from 1 to 65535")
		}
	}
	if u.User != nil {
		return "", umbel.Invalid("address", u.Redacted(), "must not hold a user or password: there is no authentication")
	}
	if bare && u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), DefaultPort)
	}
	out := strings.TrimRight(u.String(), "/")
	if _, err := url.Parse(out); err != nil { // a zone that cannot be written
		return "", umbel.Invalid("address", s, rule)
	}
	return out, nil
}
