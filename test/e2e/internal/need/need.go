// Package need finds what a test needs from the machine. What is not there skips
// the test on a person's machine and fails it under CI=true, where a test that
// silently did not run would be a lie.
//
// It is safe for concurrent use.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program returns the path of a program: from the directory PODMQ_E2E_BIN, else
// from PATH.
func Program(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv("PODMQ_E2E_BIN"); dir != "" {
		if path := filepath.Join(dir, name); isProgram(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is neither in PODMQ_E2E_BIN nor in PATH", name)
	}
	return path
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Missing ends the test because something is not there.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
