// Package cluster tests PodMQ in a kind cluster of its own: what needs a kubelet.
// Its tests have the build tag e2e; `make e2e` makes the images they need and
// runs them. The cluster has a name and a kubeconfig of its own and is deleted
// afterwards; when a test fails, its logs are exported first.
//
//	PODMQ_E2E_NODE_IMAGE  kind's node image (default: kind's own)
//	PODMQ_E2E_BIN         a directory with kubectl and helm (default: PATH)
//	PODMQ_E2E_CLIENT      an image with sh and curl
//	PODMQ_E2E_LOGS        where logs are exported to (default: a new directory)
//	PODMQ_E2E_KEEP        keep the cluster when set, to look at it
package cluster
