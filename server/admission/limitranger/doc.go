// Package limitranger is the admission plugin for the LimitRanges of a namespace.
//
//	new pod, resize of a pod ─▶ Plugin ─▶ Admit: default requests and limits of containers
//	new or changed claim     ─▶        ─▶ Validate: min, max and ratio, or 403
//
// An informer knows the LimitRanges. It starts with the first pod or claim: many servers
// have neither. A namespace without a LimitRange costs a lookup in its index.
//
// # Invariants
//
// A LimitRange that exists before a request applies to it, whichever replica has stored
// it: etcd stores the pod only if the namespace has no LimitRange that is newer than what
// Admit knew. A LimitRange that another replica has deleted may apply until the informer
// hears of it.
//
// LimitRanges apply in the order of their names. kube-apiserver has no order. As there,
// the annotation is that of the last one that has set anything, and the first one that
// refuses gives the reasons.
package limitranger
