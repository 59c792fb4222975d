// Package launch starts the processes that servers are compared with and measured on: an etcd, and beside it upstream's server or ours, each
// with certificates made for it.
//
//	Run(ctx) ─▶ Etcd ─▶ CA (its own, server and client certificates) ─▶ Server: process, ready ─▶ rest.Config, kubeconfig, pid
//
// A process ends when its Stop is called, and at the latest with the process that started it, however that one ends. All listen on
// loopback addresses only, and keep what they write in a temporary folder.
package launch
