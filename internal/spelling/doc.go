// Package spelling suggests a known name for a misspelt one.
//
// Names are alike if few letters have to be inserted, removed, replaced or
// swapped with their neighbour to get from one to the other, case aside: at most
// three, and at most a third of the name.
package spelling
