// Command migration runs StorageVersionMigrations on kube-apiserver, with kube-controller-manager
// beside it, and on our server, and prints what each did.
//
//	etcd ─┬─ kube-apiserver + kube-controller-manager ─┐
//	etcd ─┴─ espalier-server ──────────────────────────┴─▶ cases ──▶ conditions, storedVersions, stored objects
//
// Each case makes a CRD with objects in v1, makes v2 the storage version, spoils what the case is
// about, and creates a StorageVersionMigration. What counts is what is in etcd afterwards: whether
// status.storedVersions of the CRD says the truth about the objects.
package main
