// Package bridge gives packages of this repository access to what packages espalier and cel do not export: the plan of a
// schema, the index of a normalized object, and compiled CEL rules. Internal types are not part of the public API.
package bridge
