package main

import "os"

// terminationMessageBytes is the most that Kubernetes keeps of a message.
const terminationMessageBytes = 4096

// writeTermination leaves the reason of an exit where `kubectl describe pod`
// shows it. The file is there in a container and nowhere else, so it is never
// made; that it cannot be written is no fault of its own.
func writeTermination(file, reason string) {
	if len(reason) > terminationMessageBytes {
		reason = reason[:terminationMessageBytes]
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(reason)
}
