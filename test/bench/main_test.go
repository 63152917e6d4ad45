package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"testing"
)

const (
	// roleVar names the environment variable that makes this binary one process of a contestant.
	roleVar = "UMBEL_BENCH_ROLE"
	// profileVar names the one with the directory for CPU profiles.
	profileVar = "UMBEL_BENCH_PROFILE"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := profiled(role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// profiled plays a role, under the profiler if that is asked for.
func profiled(role string, args []string) (err error) {
	if dir := os.Getenv(profileVar); dir != "" {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", role, os.Getpid())))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	// A process ends when its standard input does, also if whoever started it was killed. Until then it answers each
	// line with the processor time that it has used.
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(cpuSeconds())
		}
	}()
	err = play(ctx, role, args)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// cpuSeconds is the processor time, user and system, that this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
