// Package admission tests what the policies of charts/podmq make of pods, against
// a real API server (see internal/apiserver). What becomes of the pods is the
// business of package cluster.
package admission
