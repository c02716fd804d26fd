/**
 * Freezes a value with all that it holds, so that code which changes it throws. Errors stay as they are: a refusal gets
 * the state of its rate limit after the commit.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || value instanceof Error)
    return value
  if (value instanceof Map) {
    for (const member of value.values()) deepFreeze(member)
    const refuse = () => {
      throw new Error('a map was changed')
    }
    Object.assign(value, { set: refuse, delete: refuse, clear: refuse })
  }
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
  return value
}
