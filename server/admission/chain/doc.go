// Package chain is the chain of admission plugins. It runs the plugins of
// k8s.io/apiserver on objects that are bytes.
//
//	         ┌────────────┐  idle   ┌──────────────────────────────┐
//	request ─┤ namespace, ├───┬────▶│ quota ─▶ admitted            │
//	         │ owners     │   │     └──────────────────────────────┘
//	         └────────────┘   │ configured                ▲
//	                          ▼                           │ bytes, if something has changed
//	                   matching on metadata ──▶ map ──▶ policies and webhooks
//	                                    (if one matches)
//
// The plugins match a request by its resource and by labels; an [object.Object]
// suffices for that. When one matches, it calls the request's
// admission.ObjectInterfaces to convert the object into the kind that it was
// registered for. This conversion decodes the bytes into an Unstructured, and encodes
// it again if the plugin has changed it. Objects of Go types pass the chain unchanged.
//
// # Invariants
//
// As long as no webhook and no policy is configured, the chain costs a lookup of
// the namespace, a look at the owner references and one into the index of quotas.
// Nothing is decoded unless a webhook or a policy matches, and then
// an object once for each version that is asked for.
//
// An object that a plugin has changed loses its schema marker, and the caller of the
// chain normalizes it again. Plugins cannot change the kind of an object.
//
// Webhooks are called by [webhook.Client], with no credentials but those that the
// admission configuration file names. The caller's deadline ends a call.
package chain
