// Package kwok has no code: its module pins the version of kwok, which plays the kubelet, and testdata has what the test applies.
package kwok
