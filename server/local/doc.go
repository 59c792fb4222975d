// Package local is a control plane in one piece: an etcd, certificates and a
// server, in this process and for this machine. `espalier dev` and espaliertest
// are made of it, and a program that wants an API of its own needs no more:
//
//	plane, err := local.Start(ctx, local.Options{Dir: "data"})
//	…
//	defer plane.Stop()
//	client, err := kubernetes.NewForConfig(plane.Config())
//
//	Dir ─┬ etcd/   all objects
//	     └ pki/    the CA, the server's certificate, keys of service accounts
//
// # Invariants
//
// When Start returns, the server is ready: roles and CRDs are known. When Stop returns,
// only the folder is left.
//
// The server accepts only clients with a certificate that the CA of the folder has
// signed: the folder is for its owner alone.
package local
