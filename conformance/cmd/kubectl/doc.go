// Command kubectl is kubectl, built from the module that this one pins: the
// scenarios are run with the client that people use.
package main
