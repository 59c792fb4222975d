// Package tolerations is the admission plugin that has pods tolerate for five minutes
// that their node is not ready or unreachable.
//
//	new or changed pod ─▶ Plugin ─▶ two tolerations, unless it has its own
package tolerations
