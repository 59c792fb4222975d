// Package reply writes what the server answers beside objects: errors, and that
// a document has not changed.
package reply
