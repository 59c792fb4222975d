// Package lister lists the objects of a cluster-scoped resource for admission plugins:
// the classes of pods, claims and ingresses.
//
//	plugin ─▶ Lister ─▶ informer (synced, and no write under way)
//	                 └▶ etcd     (otherwise)
//
// The informer starts with the first question: many servers have no pods. It makes a
// question cost a lookup instead of a request.
//
// # Invariants
//
// A question before the informer has synced is answered from etcd. So is every question
// for a while after this replica has written an object of the resource. An object that
// another replica has created is found by its name. All may miss it, and the objects that
// another replica has changed or deleted may be those of before, until the informer hears
// of it.
package lister
