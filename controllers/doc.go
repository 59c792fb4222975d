// Package controllers has no code of its own, only tests: real controllers, as their projects ship them, run against the server.
//
//	module cache ──go build──▶ controller, a process of its own ──token of its ServiceAccount──▶ espalier serve ──▶ etcd
//	      └──────chart or kustomization──▶ roles, CRDs, webhooks ──as an administrator─────────────────▲
//
// # Invariants
//
//   - A controller that makes workloads runs on a server with all kinds, beside kube-controller-manager, kube-scheduler and kwok.
//   - A controller is the main package of its module at a released version: nothing of it is patched, copied or configured at build time.
//     Its module here (a folder with a go.mod) only names the version.
//   - It has the rights of the roles that its project ships, and no others.
//   - Of what its project ships, only what needs a Service is rewritten: a webhook's service becomes a URL on localhost, and the
//     certificate for that service is valid for localhost too.
//   - What the server has no resource for is left out, and each test says exactly what that is.
package controllers
