/** Field check that rejects an empty value. */
export const required = (value: string) => (value.trim() === '' ? 'required' : null)
