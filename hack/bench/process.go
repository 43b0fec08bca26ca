package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A setting is where server and load run.
type setting string

const (
	pinned   setting = "pinned"    // the server on one core, the load on another
	allCores setting = "all-cores" // both where the kernel puts them
)

// Cores of the pinned setting.
const serverCore, loadCore = "0", "1"

// command is a program as it runs on this setting's server or load cores.
func (s setting) command(core, program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	if s == pinned {
		c = exec.Command("taskset", append([]string{"-c", core, program}, args...)...)
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
	} else {
		c.Env = os.Environ()
	}
	// Whatever becomes of us, no server stays behind.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// A process is a server's.
type process struct {
	cmd     *exec.Cmd
	logs    bytes.Buffer
	network string
	address string
}

// start starts a server and waits until it answers at its address.
func (p *process) start(ctx context.Context, c *exec.Cmd) error {
	p.cmd = c
	c.Stdout, c.Stderr = &p.logs, &p.logs
	if err := c.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
		nc, err := net.Dial(p.network, p.address)
		if err == nil {
			return nc.Close()
		}
		pause := time.NewTimer(2 * time.Millisecond)
		<-pause.C
	}
	p.stop()
	return fmt.Errorf("cannot reach %s at %s: %s", filepath.Base(c.Path), p.address, p.logs.Bytes())
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Wait()
}

// cpuTime is what a process has used so far, user and system, all threads. It is
// the sum that /proc/PID/stat shows in ticks of 10 ms, to the nanosecond.
func cpuTime(pid int) (time.Duration, error) {
	// linux/posix-timers.h: the clock of a process is its inverted id above three
	// bits, of which 2 stands for CPUCLOCK_SCHED.
	const sched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &t); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// resident is the memory of a process, in bytes.
func resident(pid int) (int64, error) {
	kib, err := proc(pid, "status", "VmRSS")
	return kib << 10, err
}

// systemCalls are the reads and writes of a process so far, of all threads.
func systemCalls(pid int) (int64, error) {
	reads, err := proc(pid, "io", "syscr")
	if err != nil {
		return 0, err
	}
	writes, err := proc(pid, "io", "syscw")
	return reads + writes, err
}

// proc is a number that stands under its name in a file of /proc/PID.
func proc(pid int, file, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		}
	}
	return 0, fmt.Errorf("cannot find %s of process %d", name, pid)
}

// freePort is a TCP port of the loopback that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
