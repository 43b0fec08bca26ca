// Sidecar is PodMQ's one program: the broker, and the commands that talk to a
// running one over its socket.
//
// main.go hands the process to run.go, which draws how the broker is wired.
// config.go is every setting, declared.go the grammar of the topics and groups
// among them. There is one file a command. Decisions are made elsewhere: this
// package reads settings, starts things in order, and stops them in reverse.
package main
