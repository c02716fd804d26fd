/**
 * An oxlint plugin that keeps functions to a screen. It counts the lines of code of a function without those of the functions
 * that it contains and names: a factory is as long as what it does itself, and each of its methods is judged alone.
 */
const linesMax = 70

/** Files and folders whose functions may be longer, and why. A ceiling may be lowered, and a new one needs a reason. */
const exceptions = [
  { path: '/cli/commands/', linesMax: 129, reason: 'declares commands, with their options and texts' },
  { path: '/cli/console/screens/', linesMax: 103, reason: 'markup of one screen' },
  { path: '/src/config/config.ts', linesMax: 110, reason: 'one row for each setting' },
  {
    path: '/src/http/routes/',
    linesMax: 155,
    reason: 'declares routes, with their schemas and documentation',
  },
  { path: '/src/metrics/metrics.ts', linesMax: 130, reason: 'declares metrics' },
  { path: '/src/server/', linesMax: 150, reason: 'creates the parts of a server, each from those before it' },
  { path: '/src/store/analytics.ts', linesMax: 71, reason: 'declares statements' },
  { path: '/src/store/engine/tables/', linesMax: 114, reason: 'declares tables, one column a line' },
  { path: '/src/store/sealing.ts', linesMax: 86, reason: 'declares statements for each sealed column' },
]

const holders = new Set(['MethodDefinition', 'VariableDeclarator', 'PropertyDefinition', 'Property'])

/**
 * Functions with a name of their own: declarations, methods, and those that a variable or property holds, also by way of a
 * call, such as a query that `prepare` builds.
 */
const isNamed = ({ type, parent }) =>
  type === 'FunctionDeclaration' ||
  holders.has(parent?.type) ||
  (parent?.type === 'CallExpression' && holders.has(parent.parent?.type))

const functionLength = {
  create(context) {
    /** Functions that contain the one at hand, the innermost last, with the lines that are not their own. */
    const open = []
    const exception = exceptions.find(({ path }) => context.filename.includes(path))
    const ownMax = exception?.linesMax ?? linesMax
    let codeLines

    /** Numbers of the lines that have more than comments. */
    function findCodeLines() {
      const { ast } = context.sourceCode
      const lines = new Set()
      for (const { loc } of ast.tokens)
        for (let line = loc.start.line; line <= loc.end.line; line++) lines.add(line)
      return lines
    }

    function countCode({ start, end }) {
      codeLines ??= findCodeLines()
      let count = 0
      for (let line = start.line; line <= end.line; line++) if (codeLines.has(line)) count++
      return count
    }

    const enter = (node) => void open.push({ node, others: 0 })
    const exit = (node) => {
      const { others } = open.pop()
      const lines = countCode(node.loc)
      const own = lines - others
      const outer = open.at(-1)
      // The line where a named function begins belongs to the one around it.
      if (outer) outer.others += isNamed(node) && lines > 1 ? lines - 1 : others
      if (own > ownMax) {
        const message = `${own} lines of code; a function has at most ${ownMax} of its own. Name a part of it.`
        context.report({ node, message })
      }
    }
    return {
      FunctionDeclaration: enter,
      'FunctionDeclaration:exit': exit,
      FunctionExpression: enter,
      'FunctionExpression:exit': exit,
      ArrowFunctionExpression: enter,
      'ArrowFunctionExpression:exit': exit,
    }
  },
}

export default { meta: { name: 'otpd-functions' }, rules: { length: functionLength } }
