/** The `Examples:` part of a help text. The tests run every line of it in a shell. */
export const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
