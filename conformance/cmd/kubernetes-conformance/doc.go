// Command kubernetes-conformance runs the conformance specs of Kubernetes with kube-apiserver alone and with our server, and prints which
// specs our server loses.
//
//	.bin/e2e (the specs) ─▶ one process a spec ─▶ kube-apiserver + etcd: reference.txt
//	                                           ─▶ espalier + etcd:       reference.txt and controllers.txt
//
// Most of the specs need nodes, and with a server alone they fail only after minutes. Two lists in conformance/kubernetes name the others:
// reference.txt those that pass with kube-apiserver alone, controllers.txt those that need only controllers that our server has. -all -record
// writes the lists.
//
// With -tenant the specs run in a tenant of our server, too. The output says which specs differ.
//
// Before each spec the suite waits for the service account "default" and the config map "kube-root-ca.crt" of the spec's namespace. In a
// cluster kube-controller-manager creates both. With kube-apiserver alone this command does.
package main
