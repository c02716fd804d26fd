/**
 * Replaces react-devtools-core, which Ink imports when DEV=true. The package is not installed, and a binary with the
 * import unresolved would crash at the start of every command.
 */
export default { initialize() {}, connectToDevTools() {} }
