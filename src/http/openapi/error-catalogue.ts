import type { ErrorCode } from '../../domain/model/errors.ts'
import { httpStatusByCode } from '../errors.ts'
import type { ErrorExample } from './error-example.ts'
import { errorExamples, type ErrorName } from './error-examples.ts'

const exampleTraceId = 'req_01kaaaaaaaeekr1q2v3w4x5y6z'

/** HTTP status of an error. */
export const errorStatus = (name: ErrorName) => httpStatusByCode[errorExamples[name].code]

/** Body of a response with this code; undefined if the catalogue has none. */
export function findExample(code: ErrorCode) {
  const found = Object.values(errorExamples).find((one) => one.code === code)
  return found && toBody(found)
}

const toBody = ({ code, message, ...extras }: ErrorExample) => ({
  error: { code, message, traceId: exampleTraceId, ...extras },
})

/** `components.examples` of the document: the whole body of each error. */
export const exampleComponents = (names: ReadonlySet<ErrorName>) =>
  Object.fromEntries(
    [...names].toSorted().map((name) => {
      const { code, reason } = errorExamples[name]
      const summary = reason === undefined ? code : `${code}, reason ${reason}`
      return [name, { summary, value: toBody(errorExamples[name]) }]
    }),
  )

/** The error catalogue in Markdown: every code and reason with its message, by status. */
export function errorCatalogue(): string {
  const names = Object.keys(errorExamples).filter((name): name is ErrorName => name in errorExamples)
  const byStatus = Map.groupBy(names, errorStatus)
  const sections = [...byStatus].toSorted(([one], [other]) => one - other)
  return sections
    .map(([status, listed]) => `## ${status}\n\n${listed.map(describeError).join('\n')}\n`)
    .join('\n')
}

function describeError(name: ErrorName): string {
  const { code, reason, message } = errorExamples[name]
  return `- \`${code}\`${reason === undefined ? '' : `, reason \`${reason}\``}: ${message}`
}
