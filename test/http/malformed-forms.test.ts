import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { canary, createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import type { Operation } from '../helpers/openapi.ts'

describeEachDatabase('forms', (database) => {
  let apiTester: ApiTester
  let formOperations: Operation[]

  const formType = 'application/x-www-form-urlencoded'

  beforeAll(async () => {
    apiTester = await createApiTester({ database: database() })
    formOperations = apiTester.operations.filter(
      ({ requestBody }) => requestBody?.content[formType] !== undefined,
    )
  })
  afterAll(() => apiTester.service.dispose())

  /** Sends one body to every operation that takes a form and returns all faults. */
  async function sendToAll(
    body: string | Uint8Array<ArrayBuffer>,
    statuses: number[],
    headers: Record<string, string> = {},
  ) {
    const faults: string[] = []
    for (const operation of formOperations) {
      const result = await apiTester.callAndCheck(operation, {
        body,
        headers: { 'content-type': formType, ...headers },
      })
      faults.push(...result.faults)
      const { status } = result.response
      if (!statuses.includes(status)) faults.push(`${operation.operationId}: ${status}`)
    }
    return faults
  }

  test('the OpenAPI document has operations that take a form', () => {
    expect(formOperations.map(({ operationId }) => operationId).toSorted()).toEqual([
      'requestTokens',
      'revokeToken',
    ])
  })

  test('unknown parameters are ignored, and the document says so (RFC 6749 §3.2)', async () => {
    for (const { requestBody } of formOperations) {
      expect(requestBody?.content[formType]?.schema.additionalProperties).toBeUndefined()
    }
    expect(await sendToAll('token=x&unknown=x', [200, 400])).toEqual([])
  })

  describe('a form', () => {
    test.each([
      '',
      '&&&',
      '=',
      '=&=',
      'grant_type',
      'grant_type=',
      'token',
      'token=',
      `grant_type=${canary}`,
      'grant_type=__proto__',
      'grant_type=constructor',
      'grant_type=toString',
      'grant_type=password',
      `grant_type=password&username=${canary}`,
      `grant_type=password&username=&password=${canary}`,
      `grant_type=refresh_token&client_id=${canary}&refresh_token=x`,
      `grant_type=refresh_token&refresh_token=${canary}`,
      'grant_type=refresh_token&refresh_token=%00',
      'grant_type=refresh_token&refresh_token=%ff%zz%',
      `grant_type=urn%3Aotpd%3Asetup-token&setup_token=${canary}&email=a%40b.example&password=${canary}`,
      'grant_type=urn%3Aotpd%3Asetup-token&setup_token=%00&email=%00&password=%00',
      'grant_type=password&username=%00&password=%00',
      '%',
      '%zz=%zz',
      `${canary}=${canary}`,
      `{"grant_type":"${canary}"}`,
    ])('that is no valid grant gets 400, as OAuth prescribes: %s', async (form) => {
      const faults = await sendToAll(form.includes('token=') ? form : `${form}&x=${canary}`, [400])
      // Revoking an unknown token succeeds (RFC 7009 §2.2).
      expect(faults.filter((fault) => fault !== 'revokeToken: 200')).toEqual([])
    })

    test('with a repeated parameter is rejected', async () => {
      expect(await sendToAll('token=a&token=b&grant_type=password&grant_type=password', [400])).toEqual([])
      expect(await sendToAll(`token=a&%74oken=${canary}&grant_type=x`, [400])).toEqual([])
    })

    test('that is not UTF-8 is rejected', async () => {
      expect(await sendToAll(Uint8Array.from([0x74, 0x3d, 0xff, 0xfe]), [400])).toEqual([])
    })

    test('of more than 64 KiB is rejected', async () => {
      expect(await sendToAll(`token=${canary.repeat(7000)}`, [413])).toEqual([])
    })

    test.each(['application/json', 'multipart/form-data; boundary=x', 'text/plain', `x/${canary}`, ''])(
      'with the media type %p is rejected',
      async (type) => {
        expect(await sendToAll('grant_type=password&token=x', [415], { 'content-type': type })).toEqual([])
      },
    )

    test('that is compressed is rejected', async () => {
      expect(await sendToAll('grant_type=password&token=x', [415], { 'content-encoding': 'gzip' })).toEqual(
        [],
      )
    })
  })
})
