import { expect, test } from 'bun:test'
import { readForm } from '../../src/http/oauth.ts'

const read = (parameters: number) =>
  readForm(
    new Request('http://localhost/', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Array.from({ length: parameters }, (_, i) => `k${i}=1`).join('&'),
    }),
  )

test('a form has at most 100 parameters', async () => {
  expect(Object.keys(await read(100))).toHaveLength(100)
  await expect(read(101)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'The form has more than 100 parameters.',
  })
})
