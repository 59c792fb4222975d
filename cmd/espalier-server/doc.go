// Command espalier-server runs an API server for CustomResourceDefinitions and
// their objects. All it does is in internal/command.
package main
