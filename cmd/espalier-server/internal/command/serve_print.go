package command

import (
	"io"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// printConfig writes the flags that are set as a file for --config, by name.
// Secrets are never among them: flags name the files that hold them.
func printConfig(out io.Writer, flags *pflag.FlagSet) error {
	file := &yaml.Node{Kind: yaml.MappingNode}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			file.Content = append(file.Content, textNode(flag.Name), valueNode(flag, flags))
		}
	})
	if len(file.Content) == 0 {
		_, err := io.WriteString(out, "# nothing is set\n")
		return err
	}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(file); err != nil {
		return err
	}
	return encoder.Close()
}

// valueNode is a flag's value in the form that a file has it in.
func valueNode(flag *pflag.Flag, flags *pflag.FlagSet) *yaml.Node {
	value := flag.Value.String()
	switch slice, ok := flag.Value.(pflag.SliceValue); {
	case ok:
		return listNode(slice.GetSlice(), isNumber(flag))
	case flag.Value.Type() == "namedCertKey":
		return listNode(strings.Split(strings.Trim(value, "[]"), ";"), false)
	case flag.Value.Type() == typeStringMap:
		entries, _ := flags.GetStringToString(flag.Name) // its type is checked above
		node := &yaml.Node{}
		_ = node.Encode(entries) // sorted; texts can be encoded
		return node
	case isMap(flag):
		return pairsNode(value)
	case isNumber(flag), flag.Value.Type() == "bool":
		return plainNode(value)
	}
	return textNode(value)
}

func isNumber(flag *pflag.Flag) bool {
	kind := flag.Value.Type()
	return strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "float") || kind == "Level"
}

// pairsNode makes a map of a=b,c=d, where the last one of a name counts. The multimap
// of feature gates writes a colon before names that belong to no component.
func pairsNode(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	at := map[string]int{}
	for pair := range strings.SplitSeq(value, ",") {
		name, value, _ := strings.Cut(strings.TrimPrefix(pair, ":"), "=")
		if i, again := at[name]; again {
			node.Content[i] = plainNode(value)
			continue
		}
		node.Content = append(node.Content, textNode(name), plainNode(value))
		at[name] = len(node.Content) - 1
	}
	return node
}

func listNode(items []string, numbers bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range items {
		if numbers {
			node.Content = append(node.Content, plainNode(item))
		} else {
			node.Content = append(node.Content, textNode(item))
		}
	}
	return node
}

// plainNode is a number or a boolean.
func plainNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// textNode is quoted where it would mean something else.
func textNode(s string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(s)
	return node
}
