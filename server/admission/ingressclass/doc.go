// Package ingressclass is the admission plugin for Ingresses without a class.
//
//	new Ingress ─▶ Plugin ─▶ the default IngressClass, if the Ingress names none
//
// An informer knows the IngressClasses (see [lister.Lister]). If there are several
// defaults, the newest one counts.
package ingressclass
