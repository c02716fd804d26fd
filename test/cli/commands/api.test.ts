import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createCliFixture } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('api', () => {
  test('sends --data from the argument, a file or standard input', async () => {
    cli.respond = ({ body }) => new Response(body)
    await Bun.write(join(cli.home.directory, 'body.json'), '{"from":"file"}')
    const sent = async (data: string) =>
      (await cli.home.otpd(['api', 'post', '/v1/projects', '--data', data], { input: '{"from":"input"}' }))
        .stdout
    expect(await sent('{"from":"word"}')).toBe('{"from":"word"}\n')
    expect(await sent('@body.json')).toBe('{"from":"file"}\n')
    expect(await sent('-')).toBe('{"from":"input"}\n')
    expect(cli.server.requests[0]?.headers.get('content-type')).toBe('application/json')
    expect(cli.server.requests[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  for (const path of ['//evil.example/v1', 'http://evil.example', 'v1/projects', '@evil.example', ''])
    test(`rejects the path ${JSON.stringify(path)}`, async () => {
      expect((await cli.home.otpd(['api', 'GET', path])).exitCode).toBe(2)
      expect(cli.server.requests).toEqual([])
    })
})
