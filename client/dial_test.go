package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// servers are the addresses that Dial makes of a text, sorted as the engine will try them.
func servers(t *testing.T, text string) (string, error) {
	t.Helper()
	c, err := client.Dial(text)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.Engine.(interface{ Servers() string }).Servers(), nil
}

func TestDialReadsAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"127.0.0.1":                  "http://127.0.0.1:7890",
		"localhost:80":               "http://localhost:80",
		" umbel ":                    "http://umbel:7890",
		"http://umbel":               "http://umbel",
		"https://umbel.example/":     "https://umbel.example",
		"https://umbel.example/a/b/": "https://umbel.example/a/b",
		"[::1]":                      "http://[::1]:7890",
		"[::1]:9":                    "http://[::1]:9",
		"HTTP://umbel:1":             "http://umbel:1",
	} {
		if got, err := servers(t, text); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	got, err := servers(t, "a:1, b ,https://c")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http://a:1", "http://b:7890", "https://c"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

func TestDialRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ",", "a,", ":80", "http://", "ftp://a", "a b", "http://a?q", "http://a#f", "a:port", "::1", "http://user:secret@a", "a:99999", "http://a:0x1",
	} {
		_, err := servers(t, text)
		e, ok := errors.AsType[*umbel.Error](err)
		if !ok || e.Code != umbel.CodeInvalid || e.Field != "address" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzDial: any text is refused by name, or a list of addresses that reads as itself.
func FuzzDial(f *testing.F) {
	for _, text := range []string{"a", "a:1,b:2", "https://[::1%25eth0]:1/x", "http://a/%2f", "http://\xff", "a://b", "//"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := servers(t, text)
		if err != nil {
			if !errors.Is(err, umbel.ErrInvalid) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := servers(t, got)
		if err != nil || strings.Count(again, ",") != strings.Count(got, ",") || len(again) != len(got) {
			t.Errorf("%q is %q, which is %q, %v", text, got, again, err)
		}
	})
}
