// Package words checks words that several kinds have in their fields: values of enums,
// names, lists with "*", selectors. The errors are those of kube-apiserver.
package words
