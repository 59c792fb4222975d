// Command espalier says what an API server would say about
// CustomResourceDefinitions and custom resources, offline. All it does is in
// internal/cli.
package main
