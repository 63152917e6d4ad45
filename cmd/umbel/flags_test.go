package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/worker"
)

func TestCase37Durations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"42m30s": 42*time.Minute + 30*time.Second, "1h2m3.5s": time.Hour + 2*time.Minute + 3500*time.Millisecond,
		"1s": time.Second, "24h": 24 * time.Hour, "1001ms": 1001 * time.Millisecond,
	} {
		var got time.Duration
		if err := (&duration{&got, time.Second, 24 * time.Hour}).Set(text); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"0": "must be from 1s to 24h0m0s", "-1s": "must be from 1s", "999ms": "must be from 1s", "24h1ms": "must be from 1s",
		"1.5ms": "must be from 1s", "1s1ns": "whole number of milliseconds", "": "must be a duration such as",
		"5": "must be a duration such as", "1d": "must be a duration such as", "300y": "must be a duration such as",
		"9223372036854775807ms": "must be a duration such as",
	} {
		got := time.Minute
		if err := (&duration{&got, time.Second, 24 * time.Hour}).Set(text); err == nil || !strings.Contains(err.Error(), want) || got != time.Minute {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestCase38Numbers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "-1", "1000001", "", "1.5", "x", "99999999999999999999"} {
		n := worker.DefaultConcurrency
		err := (&number{&n, 1, umbel.MaxConcurrency}).Set(text)
		if err == nil || err.Error() != "must be a whole number from 1 to 1000000" || n != worker.DefaultConcurrency {
			t.Errorf("%s: %v", text, err)
		}
	}
	var list []int
	f := &numbers[int]{&list, 1, 255}
	for _, text := range []string{"65, 66", "1"} {
		if err := f.Set(text); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(list, []int{65, 66, 1}) {
		t.Errorf("a list is %v", list)
	}
}
