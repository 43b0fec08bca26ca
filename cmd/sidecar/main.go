package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Before all else: a pod may be deleted while its containers still start, and
	// a SIGTERM that finds no handler would end the process with 143 instead of 0.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(run(&process{
		args:           os.Args[1:],
		stdin:          os.Stdin,
		stdout:         os.Stdout,
		stderr:         os.Stderr,
		signals:        signals,
		terminationLog: "/dev/termination-log", // Kubernetes' default terminationMessagePath
	}))
}
