package bug

// documents are bugs of reading and writing JSON.
var documents = []Bug{
	{
		Name: "small-float-exponent", What: "0.000001 is written with an exponent",
		Example: `{"type":"number"} with 0.0000010`,
		Edits:   []Edit{{jsondocPackage, "encode.go", "(abs < 1e-6 || abs >= 1e21)", "(abs <= 1e-6 || abs >= 1e21)"}},
	},
	{
		Name: "large-float-digits", What: "1e21 is written without an exponent",
		Example: `{"type":"number"} with 1e21`,
		Edits:   []Edit{{jsondocPackage, "encode.go", "(abs < 1e-6 || abs >= 1e21)", "(abs < 1e-6 || abs > 1e21)"}},
	},
	{
		Name: "surrogate-swallows", What: "a lone surrogate takes the next escaped character with it",
		Example: `{"type":"string"} with "\ud800\u0041"`,
		Edits:   []Edit{{jsondocPackage, "encode.go", "if r = utf16.DecodeRune(r, low); r != utf8.RuneError {", "if r = utf16.DecodeRune(r, low); low >= 0 {"}},
	},
	{
		Name: "min-int64", What: "the smallest 64-bit integer is not an integer",
		Example: `{"type":"integer"} with -9223372036854775808`,
		Edits:   []Edit{{jsondocPackage, "jsondoc.go", "case negative && u <= 1<<63:", "case negative && u < 1<<63:"}},
	},
	{
		Name: "minus-zero", What: "the integer -0 is stored as it is written",
		Example: `{"type":"integer"} with -0`,
		Edits:   []Edit{{jsondocPackage, "index.go", "if integer && i-digits <= 18 && (src[digits] != '0' || digits == start) {", "if integer && i-digits <= 18 {"}},
	},
	{
		Name: "duplicate-among-many", What: "a key that is written twice among many is stored twice",
		Example: `an object of 40 keys of more than eight letters, in no order, two of them equal`,
		Edits:   []Edit{{jsondocPackage, "navigate.go", "for k := i; k < j; k++ {", "for k := i + 1; k < j; k++ {"}},
	},
	{
		Name: "empty-key-order", What: "an empty key is not sorted before the others",
		Example: `{"!":1,"":2} below x-kubernetes-preserve-unknown-fields`,
		Edits:   []Edit{{jsondocPackage, "index.go", "src[prev.off+1] >= src[i+1] || end-i == 2 {", "src[prev.off+1] >= src[i+1] {"}},
	},
}

// formats are bugs of formats of strings.
var formats = []Bug{
	{
		Name: "hostname-64", What: "a label of a hostname may have 64 characters",
		Example: `{"type":"string","format":"hostname"} with 64 times "a"`,
		Edits:   []Edit{{formatPackage, "address.go", "if label > 63 {", "if label > 64 {"}},
	},
	{
		Name: "cidr-32", What: "a network of a single IPv4 address is refused",
		Example: `{"type":"string","format":"cidr"} with "1.2.3.4/32"`,
		Edits:   []Edit{{formatPackage, "address.go", "return value <= 8*net.IPv4len", "return value < 8*net.IPv4len"}},
	},
	{
		Name: "lowercase-z", What: "a date-time in UTC with a lower case z is refused",
		Example: `{"type":"string","format":"date-time"} with "2014-12-15t19:30:20z"`,
		Edits:   []Edit{{formatPackage, "temporal.go", "return s[0]|0x20 == 'z'", "return s[0] == 'Z'"}},
	},
	{
		Name: "long-name-254", What: "a long name may have 254 characters",
		Example: `{"type":"string","format":"k8s-long-name"} with 254 times "a"`,
		Edits:   []Edit{{formatPackage, "format.go", "len(text) <= 253 &&", "len(text) <= 254 &&"}},
	},
	{
		Name: "ssn-plain", What: "a social security number may be written without separators",
		Example: `{"type":"string","format":"ssn"} with "111111111"`,
		Edits:   []Edit{{formatPackage, "format.go", `len(text) == len("123-45-6789") &&`, `len(text) <= len("123-45-6789") &&`}},
	},
	{
		Name: "duration-weeks", What: "the unit wk is unknown in durations",
		Example: `{"type":"string","format":"duration"} with "2 wk"`,
		Edits:   []Edit{{formatPackage, "temporal.go", `"s m h ms ns us µs hr d w wk"`, `"s m h ms ns us µs hr d w"`}},
	},
	{
		Name: "september-31", What: "September has 31 days",
		Example: `{"type":"string","format":"date"} with "2006-09-31"`,
		Edits:   []Edit{{formatPackage, "temporal.go", "case 4, 6, 9, 11:", "case 4, 6, 11:"}},
	},
	{
		Name: "base64-padding", What: "three characters of padding are accepted",
		Example: `{"type":"string","format":"byte"} with "Z==="`,
		Edits:   []Edit{{formatPackage, "format.go", "for range 2 {", "for range 3 {"}},
	},
}

// patterns are bugs of the matching of regular expressions.
var patterns = []Bug{
	{
		Name: "pattern-line-end", What: "the end of a line within a text does not match $",
		Example: `{"type":"string","pattern":"(?m)a$"} with "a\nb"`,
		Edits:   []Edit{{patternPackage, "division.go", "case syntax.EmptyBeginLine, syntax.EmptyEndLine:", "case syntax.EmptyBeginLine:"}},
	},
	{
		Name: "pattern-within-word", What: "\\B does not match within a word",
		Example: `{"type":"string","pattern":"\\Bb"} with "ab"`,
		Edits: []Edit{{
			patternPackage, "build.go", "case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:\n			b.words",
			"case syntax.EmptyWordBoundary:\n			b.words",
		}},
	},
	{
		Name: "pattern-next-line", What: "a pattern that begins with the beginning of a line matches on the first line only",
		Example: `{"type":"string","pattern":"(?m)^b"} with "a\nb"`,
		Edits:   []Edit{{patternPackage, "build.go", "if len(b.set) == 0 && !b.begins {", "if len(b.set) == 0 {"}},
	},
	{
		Name: "pattern-fold-key", What: "a letter whose case is ignored somewhere in a pattern is ignored everywhere in it",
		Example: `{"type":"string","pattern":"^(?i:k)K$"} with "kk"`,
		Edits:   []Edit{{patternPackage, "division.go", "setKey{single: set.Rune[0], fold: folds(set), count: 1}", "setKey{single: set.Rune[0], count: 1}"}},
	},
}
