import { apiTokenScopes, type ApiTokenScope } from '../../src/shared/api-token-scopes.ts'
import { dayMs, hourMs } from '../../src/shared/durations.ts'
import { invalidValueError } from '../terminal/errors.ts'

/** Lists the scopes in a text. @throws usage error for an unknown scope */
export function readScopes(text: string): ApiTokenScope[] {
  return text.split(',').map((word) => {
    const scope = apiTokenScopes.find((known) => known === word.trim())
    if (scope === undefined)
      throw invalidValueError('scope', `one or more of ${apiTokenScopes.join(', ')}, separated by commas`)
    return scope
  })
}

/** Converts a lifetime to a time, or `never` to null. @throws usage error */
export function readExpiry(text: string, nowMs: number): string | null {
  if (text === 'never') return null
  const [, count, unit] = /^([1-9]\d{0,4})(h|d)$/.exec(text) ?? []
  if (count === undefined) throw invalidValueError('expires', 'a lifetime like 12h or 30d, or never')
  return new Date(nowMs + Number(count) * (unit === 'h' ? hourMs : dayMs)).toISOString()
}
