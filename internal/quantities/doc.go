// Package quantities says which quantities take too long to compute with. The library,
// k8s.io/apimachinery/pkg/api/resource, compares and adds large ones as whole numbers.
package quantities
