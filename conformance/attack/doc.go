// Package attack holds request sequences that must not succeed: reading what a role does not reach, removing what is protected, taking the
// server's memory. Each runs against a real server as a user with few rights, and its effect decides the result.
//
//	Attack.Run(Site) ─▶ Refused, Succeeded or Absent        Site: a server with etcd, an administrator, users with certificates
//
// `make attack` runs all of them against our server and against kube-apiserver and prints both columns. One that succeeds here is a
// defect. kube-apiserver's column shows whether Kubernetes refuses the same.
package attack
