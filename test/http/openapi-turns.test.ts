import { expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { docsRoutes } from '../../src/http/docs.ts'

test('the OpenAPI document is built in a turn of the event loop for each path, so that others do not wait for all', async () => {
  const describe = (operationId: string) => ({ detail: { operationId, summary: operationId } })
  const api = new Elysia()
    .get('/v1/first', () => 'first', describe('getFirst'))
    .get('/v1/second', () => 'second', describe('getSecond'))
    .get('/v1/third', () => 'third', describe('getThird'))
  let turns = 0
  const nextTurn = async () => void turns++
  const app = docsRoutes(api, { version: '1.0.0', publicUrl: null }, { nextTurn })
  const get = () => app.handle(new Request('http://localhost/v1/openapi.json'))
  const { paths } = (await (await get()).json()) as { paths: object }
  expect(Object.keys(paths)).toEqual(['/v1/first', '/v1/second', '/v1/third'])
  expect(turns).toBe(4)

  await get()
  expect(turns).toBe(4)
})
