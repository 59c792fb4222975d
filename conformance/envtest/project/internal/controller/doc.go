// Package controller cares for trees.
package controller
