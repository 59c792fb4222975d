package answer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// An Answer is a response of a server.
type Answer struct {
	Code     int
	Body     any      // decoded; a string if it is not JSON
	Warnings []string // texts of the Warning headers
}

// Closed is the code of an answer that never came: the server closed the connection.
const Closed = -1

// Read makes an answer of a response whose body was read.
func Read(response *http.Response, body []byte) *Answer {
	a := &Answer{Code: response.StatusCode, Body: Decode(body)}
	for _, w := range response.Header.Values("Warning") {
		// 299 - "text"
		_, text, _ := strings.Cut(w, "\"")
		a.Warnings = append(a.Warnings, strings.TrimSuffix(text, "\""))
	}
	return a
}

// Decode reads JSON as generator has it: integers are int64. What is not JSON is returned as a string.
func Decode(data []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return string(data)
	}
	return integers(value)
}

func integers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case map[string]any:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	}
	return value
}

// Accepted reports whether the server did what it was asked for.
func (a *Answer) Accepted() bool { return a.Code >= 200 && a.Code < 300 }

// Object returns the body if it is an object.
func (a *Answer) Object() map[string]any {
	object, _ := a.Body.(map[string]any)
	return object
}

// A Cause is an entry of the details of a Status.
type Cause struct{ Type, Field, Message string }

// Status returns the reason, message and causes of a refusal.
func (a *Answer) Status() (reason, message string, causes []Cause) {
	object := a.Object()
	if object == nil {
		text, _ := a.Body.(string)
		return "", text, nil
	}
	reason, _ = object["reason"].(string)
	message, _ = object["message"].(string)
	details, _ := object["details"].(map[string]any)
	list, _ := details["causes"].([]any)
	for _, e := range list {
		c, _ := e.(map[string]any)
		var cause Cause
		cause.Type, _ = c["reason"].(string)
		cause.Field, _ = c["field"].(string)
		cause.Message, _ = c["message"].(string)
		causes = append(causes, cause)
	}
	return reason, message, causes
}

// fields returns type and field of the causes, sorted, each once.
func fields(causes []Cause) []string {
	var out []string
	for _, c := range causes {
		out = append(out, c.Type+" "+c.Field)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Name returns the name of the object, or "".
func Name(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// slot makes the slot of a value.
func slot(what, path string) generator.Slot { return generator.Slot{What: what, Path: path} }
