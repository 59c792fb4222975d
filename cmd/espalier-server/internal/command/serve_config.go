package command

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/internal/spelling"
)

// What a settings file of the server may have at most. All flags, with values as
// long as paths are, come to a few kilobytes.
const (
	maxServeConfig  = 256 << 10
	maxConfigErrors = 20
)

// configFile sets flags to what a YAML file says:
//
//	etcd-servers: [https://a:2379, https://b:2379]
//	client-ca-file: ca.crt
//	feature-gates: {WatchList: false}
//
// A flag that is set already stays as it is.
type configFile struct {
	name  string
	flags *pflag.FlagSet // those that the file may set
	lines map[string]int // of the keys that were met
	errs  []error
}

// readConfigFile sets flags to what the file at a path says.
func readConfigFile(path string, flags *pflag.FlagSet) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxServeConfig+1))
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	c := &configFile{name: path, flags: flags, lines: map[string]int{}}
	c.read(text)
	return errors.Join(c.errs...)
}

// read sets flags to what a text says. All that is wrong with it is in errs then.
func (c *configFile) read(text []byte) {
	if len(text) > maxServeConfig {
		c.failAt(1, 1, "the file has more than %d bytes; settings are shorter than that", maxServeConfig)
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return // nothing is set
	case err != nil:
		c.syntaxError(text, err)
		return
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		c.fail(&second, "a second document begins here; write all settings into one")
		return
	case !errors.Is(err, io.EOF):
		c.syntaxError(text, err)
		return
	}
	c.settings(document.Content[0])
}

// settings sets what the members of a mapping say.
func (c *configFile) settings(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		c.fail(n, "here is %s; write settings as lines of `name: value`", describeNode(n))
		return
	}
	for i := 0; i+1 < len(n.Content) && len(c.errs) < maxConfigErrors; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if flag := c.flag(key); flag != nil {
			c.set(flag, value)
		}
	}
}

// flag is what a key names; nil if it names nothing, or nothing new.
func (c *configFile) flag(key *yaml.Node) *pflag.Flag {
	if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
		c.fail(key, "here is %s; a setting begins with the name of a flag", describeNode(key))
		return nil
	}
	name := key.Value
	if before, twice := c.lines[name]; twice {
		c.fail(key, "%s is set in line %d already; leave one of them out", name, before)
		return nil
	}
	c.lines[name] = key.Line
	flag := c.flags.Lookup(name)
	if flag != nil {
		return flag
	}
	bare := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	if near := spelling.Nearest(bare, flagNames(c.flags)); near != "" {
		c.fail(key, "there is no setting %q; did you mean %s?", name, near)
	} else {
		c.fail(key, "there is no setting %q; `serve --help` lists the flags, whose names the settings have", name)
	}
	return nil
}

func flagNames(flags *pflag.FlagSet) iter.Seq[string] {
	return func(yield func(string) bool) {
		more := true
		flags.VisitAll(func(f *pflag.Flag) { more = more && yield(f.Name) })
	}
}

// set gives a flag its value, unless it was given on the command line. What is
// wrong with the value is said in any case.
func (c *configFile) set(flag *pflag.Flag, n *yaml.Node) {
	before := len(c.errs)
	var apply func() error
	switch {
	case n.Kind == yaml.SequenceNode && isList(flag):
		apply = c.list(flag, n)
	case n.Kind == yaml.MappingNode && isMap(flag):
		apply = c.entries(flag, n)
	default:
		c.scalar(flag, n, wanted(flag))
		apply = func() error { return c.flags.Set(flag.Name, n.Value) }
	}
	if flag.Changed || len(c.errs) > before {
		return
	}
	switch err := apply(); {
	case err != nil && flag.Value.Type() == "duration":
		c.fail(n, "%s is %s; here is %s", flag.Name, wanted(flag), describeNode(n))
	case err != nil:
		c.fail(n, "%s: %s", flag.Name, withoutFlag(err))
	}
}

// withoutFlag is what a flag says about a value, without the words that say which
// flag it was.
func withoutFlag(err error) string {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.Unwrap() != nil {
		err = invalid.Unwrap()
	}
	return err.Error()
}

// list is how to set a flag to all items of a list.
func (c *configFile) list(flag *pflag.Flag, n *yaml.Node) func() error {
	items := make([]string, len(n.Content))
	for i, item := range n.Content {
		c.scalar(flag, item, "a list of single values")
		items[i] = item.Value
	}
	return func() error {
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			flag.Changed = true
			return slice.Replace(items)
		}
		return c.setEach(flag, items)
	}
}

func (c *configFile) setEach(flag *pflag.Flag, items []string) error {
	for _, item := range items {
		if err := c.flags.Set(flag.Name, item); err != nil {
			return err
		}
	}
	return nil
}

// entries is how to set a flag to all entries of a map, each in the form that it
// has on the command line.
func (c *configFile) entries(flag *pflag.Flag, n *yaml.Node) func() error {
	var items []string
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		c.text(flag, key, "a map of names to single values")
		c.entryValue(flag, value)
		if before, twice := lines[key.Value]; twice {
			c.fail(key, "%s: %s is there in line %d already; leave one of them out", flag.Name, key.Value, before)
		}
		lines[key.Value] = key.Line
		item := key.Value + "=" + value.Value
		if strings.Contains(item, ",") && flag.Value.Type() != typeStringMap {
			c.fail(key, "%s: a name or a value has a comma, which divides entries", flag.Name)
		}
		if flag.Value.Type() == typeStringMap && strings.Count(item, "=") > 1 {
			item = quotedEntry(item)
		}
		items = append(items, item)
	}
	return func() error { return c.setEach(flag, items) }
}

// entryValue complains about a value in a map that is not a single one. It may be a
// boolean: gates are open or closed.
func (c *configFile) entryValue(flag *pflag.Flag, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		c.fail(n, "%s is a map of names to single values; here is %s", flag.Name, describeNode(n))
	}
}

// quotedEntry has commas and quotes of an entry survive the command line's form.
func quotedEntry(item string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{item}) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// scalar complains about a value that is not of the flag's type.
func (c *configFile) scalar(flag *pflag.Flag, n *yaml.Node, want string) {
	fits := false
	switch flag.Value.Type() {
	case "bool":
		fits = n.Tag == "!!bool"
	case "int", "int32", "int64", "uint", "uint32", "uint64", "int32Slice":
		fits = n.Tag == "!!int"
	case "float32", "float64":
		fits = n.Tag == "!!int" || n.Tag == "!!float"
	default:
		c.text(flag, n, want)
		return
	}
	if n.Kind != yaml.ScalarNode || !fits {
		c.fail(n, "%s is %s; here is %s", flag.Name, want, describeNode(n))
	}
}

// text complains about what is not a single value that means itself. Numbers are
// fine: 1.30 is what was written and not 1.3.
func (c *configFile) text(flag *pflag.Flag, n *yaml.Node, want string) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!bool" || n.Tag == "!!null" || n.Tag == "!!merge" || n.Tag == "!!binary" {
		c.fail(n, "%s is %s; here is %s", flag.Name, want, describeNode(n))
	}
}

const typeStringMap = "stringToString"

// isMap reports whether a flag has entries of name=value.
func isMap(flag *pflag.Flag) bool {
	switch flag.Value.Type() {
	case typeStringMap, "colonSeparatedMultimapStringString", "pattern=N,...":
		return true
	}
	return false
}

// isList reports whether a flag may be given several times.
func isList(flag *pflag.Flag) bool {
	_, slice := flag.Value.(pflag.SliceValue)
	return slice || flag.Value.Type() == "namedCertKey"
}

// wanted describes the values of a flag.
func wanted(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); {
	case isMap(flag):
		return "a map of names to single values"
	case isList(flag):
		return "a list of single values"
	case kind == "bool":
		return "true or false"
	case kind == "duration":
		return "a time such as 30s or 1h"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	}
	return "a text"
}

// describeNode describes a YAML node in the words of its author.
func describeNode(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias (*" + clipped(n.Value) + "), which settings have no use for"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Tag == "!!null":
		return `nothing (write "" for an empty text)`
	case n.Tag == "!!merge":
		return "<<, which settings have no use for"
	case n.Tag == "!!str":
		return "the text " + strconv.Quote(clipped(n.Value))
	}
	return clipped(n.Value)
}

// clipped keeps messages short.
func clipped(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func (c *configFile) fail(n *yaml.Node, format string, args ...any) {
	c.failAt(n.Line, n.Column, format, args...)
}

func (c *configFile) failAt(line, column int, format string, args ...any) {
	if len(c.errs) < maxConfigErrors {
		c.errs = append(c.errs, fmt.Errorf("%s:%d:%d: %s", c.name, line, column, fmt.Sprintf(format, args...)))
	}
}

// syntaxError says where a text is not YAML: package manifest knows that better than
// the parser's message.
func (c *configFile) syntaxError(text []byte, err error) {
	line, column, what := 1, 1, strings.TrimPrefix(err.Error(), "yaml: ")
	var placed *manifest.Error
	if _, err := manifest.Parse(&manifest.File{Name: c.name, Text: text}); errors.As(err, &placed) && placed.Position.Line > 0 {
		line, column, what = placed.Position.Line, placed.Position.Column, placed.Msg
	}
	c.failAt(line, column, "this is not YAML: %s", what)
}
