// Package fields compares the fields that Espalier writes into managedFields
// with those of the stock field manager.
package fields
