// Package v1alpha1 has the first version of Trellis, in which the size was a text.
package v1alpha1
