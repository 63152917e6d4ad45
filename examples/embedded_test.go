package examples_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testredis"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		testEmbedded(t)
	})
	t.Run("on Redis", func(t *testing.T) {
		t.Parallel()
		testEmbedded(t, testredis.Real(t).URL)
	})
}

// testEmbedded interrupts the program in the middle of a request, which must still be answered: server and worker
// outlive who needs them.
func testEmbedded(t *testing.T, args ...string) {
	cmd := program(t, "embedded", args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(said, "listening on "))

	if got := post(t, url, strings.NewReader("a b c\n\nd\n")); got != "3\n0\n1\n" {
		t.Errorf("answer %q, want 3, 0 and 1 words", got)
	}

	body, rest := io.Pipe()
	answer := make(chan string, 1)
	go func() { answer <- post(t, url, body) }()
	_, _ = io.WriteString(rest, "one two\n") // returns once the program reads the request's body
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	refused(t, strings.TrimPrefix(url, "http://"))
	_, _ = io.WriteString(rest, "three\n")
	_ = rest.Close()
	if got := <-answer; got != "2\n1\n" {
		t.Errorf("answer %q after the interrupt, want 2 and 1 words", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("embedded ended with %v\n%s", err, stderr.String())
	}
}

// post sends a request, its body only once the program asks for it.
func post(t *testing.T, url string, body io.Reader) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}

// refused waits until nobody listens on addr any more.
func refused(t *testing.T, addr string) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("the program goes on listening")
		}
	}
}
