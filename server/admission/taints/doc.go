// Package taints is the admission plugin that has no pod scheduled to a node before a
// controller has seen that the node is ready.
//
//	new node ─▶ Plugin ─▶ taint node.kubernetes.io/not-ready:NoSchedule
package taints
