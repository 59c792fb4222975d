// Package argorollouts has no code: its module pins the version of argo-rollouts, and testdata has what the test applies.
package argorollouts
