package fix_test

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/crd/fix"
)

func ExampleMeans() {
	text, fixable := fix.Means("type-required")
	sentence, _, _ := strings.Cut(text, ". ")
	fmt.Println(fixable, sentence)
	// Output:
	// true The type is taken from allOf, anyOf, oneOf and not, or inferred from the other keywords
}
