// Package rbac decides what users may do, by the roles that are bound to them.
//
//	informers ──▶ index: scope ──▶ user or group ──▶ grants ──▶ role ──▶ rules
//	                │  (the cluster, or a namespace)   (one for each binding)
//	Authorize ──────┘
//
//	create, update ──▶ guard ──▶ store     of roles and bindings: nobody grants what they do not have
//	start ──▶ EnsureDefaults ──▶ client    the roles that every cluster has
//	informers ──▶ Aggregate ──▶ client     roles that are the union of others
//
// The verdicts and the texts are kube-apiserver's. What differs is the way to
// them: kube-apiserver goes through all bindings for each request, the index is
// asked for those of the user. A change of a binding changes the index where its
// subjects are, and a change of a role changes one entry, however many bindings
// refer to it.
//
// # Invariants
//
// Nothing is allowed before all roles and bindings have been seen once, and
// nothing is allowed without a rule that says so. There are no rules that deny.
//
// A binding to a role that is not there grants nothing, is no error for others,
// and begins to grant when the role comes.
//
// Grants of one subject are sorted by role, so that a role that is bound many
// times is looked at once.
//
// What a role grants is checked against what is stored, not against the index: who
// binds a role must have the rights that it has now.
package rbac
