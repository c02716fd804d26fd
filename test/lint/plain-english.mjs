/**
 * An oxlint plugin that keeps unclear wording out of comments, messages, help texts and test names. The words and the
 * reason for each are in word-list.json; documents.test.ts applies the same list to Markdown, YAML, shell, C
 * and Python files.
 */
import { readFileSync } from 'node:fs'

const list = JSON.parse(readFileSync(new URL('./word-list.json', import.meta.url), 'utf8'))
const compile = (entries) =>
  entries.map(({ pattern, reason }) => ({ expression: new RegExp(pattern, 'i'), reason }))
const everywhere = compile(list.everywhere)
const openings = list.comments.map(({ pattern, reason }) => ({ expression: new RegExp(pattern), reason }))

/** Finds the listed wordings in one text. A comment's opening is judged as well. */
export function findUnclear(text, isComment) {
  const flat = text.replaceAll(/\s*\n\s*(\*|\/\/)?\s*/g, ' ').replace(/^[*\s]+/, '')
  const rules = isComment ? [...openings, ...everywhere] : everywhere
  return rules.flatMap(({ expression, reason }) => {
    const match = expression.exec(flat)
    return match ? [{ word: match[0], reason }] : []
  })
}

const plainEnglish = {
  create(context) {
    const report = (node, text, isComment) => {
      for (const { word, reason } of findUnclear(text, isComment)) {
        context.report({ node, message: `"${word}": ${reason}` })
      }
    }
    const reportProse = (node, text) => {
      if (/\S\s+\S/.test(text)) report(node, text, false)
    }
    return {
      Program() {
        const comments = context.sourceCode.getAllComments()
        for (const [index, comment] of comments.entries()) {
          const previous = comments[index - 1]
          const continues =
            comment.type === 'Line' &&
            previous?.type === 'Line' &&
            comment.loc.start.line === previous.loc.end.line + 1
          report(comment, comment.value, !continues)
        }
      },
      Literal(node) {
        if (typeof node.value === 'string') reportProse(node, node.value)
      },
      TemplateElement(node) {
        reportProse(node, node.value.raw)
      },
      JSXText(node) {
        reportProse(node, node.value)
      },
    }
  },
}

export default { meta: { name: 'otpd' }, rules: { 'plain-english': plainEnglish } }
