// Package chain is the chain of admission plugins: those of k8s.io/apiserver,
// for objects that are bytes.
//
//	         ┌────────────┐  idle   ┌──────────────────────────────┐
//	request ─┤ namespace, ├───┬────▶│ quota ─▶ admitted            │
//	         │ owners     │   │     └──────────────────────────────┘
//	         └────────────┘   │ configured                ▲
//	                          ▼                           │ bytes, if something has changed
//	                   matching on metadata ──▶ map ──▶ policies and webhooks
//	                                    (if one matches)
//
// The plugins match a request by its resource and by labels; for that an
// [object.Object] will do. When one matches, it asks the request's
// admission.ObjectInterfaces to convert the object into the kind that it was
// registered for. That is the place where bytes become an Unstructured, and where
// what a plugin has changed becomes bytes again. Objects of Go types pass the
// chain as they are.
//
// # Invariants
//
// As long as no webhook and no policy is configured, the chain costs a lookup of
// the namespace, a look at the owner references and one into the index of quotas.
// Nothing is decoded unless a webhook or a policy matches, and then
// an object once for each version that is asked for.
//
// What plugins change has no stamp: whoever calls the chain brings it into the form
// of its schema. Plugins cannot change what kind of thing an object is.
//
// Webhooks are called by [webhook.Client], with no credentials but those that the
// admission configuration file names. The caller's deadline ends a call.
package chain
