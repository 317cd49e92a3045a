// Package terminal is how the command line speaks to a terminal: text that others wrote is made harmless on its way there,
// one line is rewritten in place, and a whole screen is drawn and given back.
//
// It knows bytes, lines and columns. It must not know what they are about: no jobs, no API.
package terminal
