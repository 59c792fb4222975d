// Command upstream-check is the smallest program that has upstream's code
// validate the CRDs of a folder: each YAML document is decoded, defaulted,
// converted and given to ValidateCustomResourceDefinition, one after another.
// bench-cli measures `espalier check` beside it.
package main
