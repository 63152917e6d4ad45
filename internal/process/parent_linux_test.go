package process_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// Only Linux ends children with their parent.
func TestDiesWithItsParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVar+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "up\n" {
		t.Fatal(line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	_, _ = out.ReadByte() // returns once the child is gone
}
