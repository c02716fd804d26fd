/** A check for fields of forms that must not stay empty. */
export const required = (value: string) => (value.trim() === '' ? 'is needed' : null)
