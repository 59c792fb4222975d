// Package command has the commands of the program espalier-server: dev, serve and
// envtest. The program is an etcd or a kube-apiserver, too, when it is called by
// that name.
package command
