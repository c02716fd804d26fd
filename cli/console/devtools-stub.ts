/**
 * Stands in for react-devtools-core, which Ink asks for when DEV=true. The real one is not installed; leaving the
 * import unresolved would build a binary whose every command dies at its start.
 */
export default { initialize() {}, connectToDevTools() {} }
