package endpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// maxIndentation is the most bytes of white space before lines that are made for
// an object, or a batch of items. A line has as much as it is deep, so that 56 KB
// can become 400 MB. An object above it is written as compact JSON where JSON is
// asked for, and not at all as YAML. Lists of digits, the shortest lines, have it
// in 1.5 MB, the most that etcd takes by default, five levels deep.
const maxIndentation = 8 << 20

// foldingDepth is where lines of YAML, of 80 bytes, have room for only half of
// that. Below it any word of a string may be on a line of its own; above it their
// white space is less than their text.
const foldingDepth = 20

// tooDeep tells whether data, compact JSON, has more than maxIndentation in a
// layout. It reads every byte once, and rather takes too many for lines.
func tooDeep(data []byte, as layout) bool {
	sum, depth := 0, 0
	quoted, escape := false, false
	for _, c := range data {
		line := false
		switch {
		case escape:
			escape = false
			line = as == inYAML && (c == 'n' || c == 'u') // \n, \u2028
		case quoted:
			quoted, escape = c != '"', c == '\\'
			// Breaks that are not escaped: U+0085, U+2028 and U+2029 end with these bytes.
			line = as == inYAML && depth > foldingDepth && (c == ' ' || c == 0x85 || c == 0xa8 || c == 0xa9)
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			line = true
		case c == '}' || c == ']':
			depth--
			line = true
		case c == ',':
			line = true
		}
		if line {
			sum += 2 * depth
		}
		if sum > maxIndentation {
			return true
		}
	}
	return false
}

// toIndented indents JSON, unless the indentation would be too large.
func toIndented(data []byte, prefix string) ([]byte, error) {
	if tooDeep(data, indented) {
		return data, nil
	}
	var b bytes.Buffer
	err := json.Indent(&b, data, prefix, "  ")
	return b.Bytes(), err
}

// converters bounds how many conversions to YAML run at a time. One takes about
// 150 times the memory of its JSON, and 0.4 s of CPU per MB: half of the
// processors stay for requests of programs.
var converters = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// toYAML converts JSON when its turn comes. The error says which part of the
// answer it is that cannot be converted.
func toYAML(ctx context.Context, part string, data []byte) ([]byte, error) {
	if tooDeep(data, inYAML) {
		return nil, notYAML(part, fmt.Sprintf("it is so deep that its lines would begin with more than %d MB of white space", maxIndentation>>20))
	}
	select {
	case converters <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-converters }()
	text, err := yaml.JSONToYAML(data)
	if err != nil {
		return nil, notYAML(part, err.Error())
	}
	return text, nil
}

// notYAML is the error for objects that are not available as YAML.
func notYAML(part, why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("%s cannot be written as YAML: %s; ask for JSON", part, why),
	}}
}
