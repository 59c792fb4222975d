// Package markdown writes untrusted text into Markdown.
package markdown
