/** Quotes a text for a POSIX shell. */
export const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Quotes a text for a POSIX shell, if it needs that. */
export const shellWord = (text: string) => (/^[\w./:@-]+$/.test(text) ? text : shellQuote(text))
