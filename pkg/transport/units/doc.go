// Package units reads and writes durations and sizes as people give them: in a
// query, in the environment, on a command line. A number without its unit is
// refused, because 30 is seconds to one reader and milliseconds to the next;
// only 0 needs none.
//
// It knows the text of a value and no bounds: those belong to whoever asked. All
// functions are safe for concurrent use.
package units
