// Package rbac authorizes requests by the roles that are bound to users.
//
//	informers ──▶ index: scope ──▶ user or group ──▶ grants ──▶ role ──▶ rules
//	                │  (the cluster, or a namespace)   (one for each binding)
//	Authorize ──────┘
//
//	create, update ──▶ guard ──▶ store     of roles and bindings: rejects privilege escalation
//	start ──▶ EnsureDefaults ──▶ client    the roles that every cluster has
//	informers ──▶ Aggregate ──▶ client     roles that are the union of others
//
// The decisions and the texts are kube-apiserver's. The algorithm differs:
// kube-apiserver goes through all bindings for each request, while the index returns
// those of the user. A change of a binding changes the index entries of its subjects.
// A change of a role changes one entry, however many bindings refer to it.
//
// # Invariants
//
// Nothing is allowed before the informers have synced, and nothing is allowed without
// a rule that allows it. There are no rules that deny.
//
// A binding to a missing role grants nothing and does not affect other bindings. It
// begins to grant when the role is created.
//
// Grants of one subject are sorted by role, so that a role that is bound many times is
// evaluated once.
//
// The escalation check reads roles from storage, not from the index: a user who binds
// a role must have the rights that the role grants now.
package rbac
