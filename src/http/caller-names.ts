/**
 * Tells whether an error may repeat the name of a property or parameter that the caller sent: only if it consists of
 * words, as a typing error would. A name that may be a credential, a number or markup is left out.
 */
export const isRepeatableName = (name: string) => name.length <= 32 && wordsPattern.test(name)

/**
 * `clientIp`, `clientIP`, `URLPrefix`, `client_ip`, `client-ip`, or the index in a list. Four words with dashes may be a
 * recovery code.
 */
const wordsPattern =
  /^(?:(?:[A-Z]{2,4}(?=[A-Z][a-z]|$)|[A-Za-z][a-z]*)(?:[A-Z][a-z]+)*(?:(?<=[a-z])[A-Z]{2,3})?|[a-z]+(?:[_-][a-z]+){0,2}|\d{1,4})$/
