// Package spelling finds the name that was meant by one that there is not.
//
// Names are alike if few letters have to be inserted, removed, replaced or
// swapped with their neighbour to get from one to the other, case aside: at most
// three, and at most a third of the name.
package spelling
