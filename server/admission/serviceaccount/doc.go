// Package serviceaccount is the admission plugin that gives pods a service account.
//
//	new pod ─▶ Plugin ─▶ the account: exists, or 403
//	                     volume kube-api-access-… and its mounts, pull secrets of the account
//
// # Invariants
//
// A pod that is admitted names an account that existed, or is a mirror pod that refers to
// neither accounts nor secrets. Admitting a pod twice changes it once: a container that a
// webhook has added gets the mount of the same volume.
package serviceaccount
